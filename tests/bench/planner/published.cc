#include "tests/bench/planner/published.h"

#include <cstdio>
#include <string>

#include "tests/bench/planner/cell.h"
#include "tests/bench/planner/in_parallel.h"
#include "tests/bench/progress.h"

namespace tidemark::bench {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr core::Bytes kDevice = 40 * core::kGiB;
constexpr core::Bytes kHost = 128 * core::kGiB;
constexpr double kLinkGbPerS = 15.754;  // each way

// Seconds per step as published; 0: not given. With an SSD of 3.2 GB/s behind the host.
struct Published {
  const char* net;
  double lru;
  double deepum;
  double g10;
  double ideal;
};
constexpr Published kPublished[] = {
    {"BERT_b256", 23.580, 10.993, 8.773, 8.743},
    {"BERT_b512", 0, 0, 17.607, 11.799},
    {"VIT_b1280", 29.520, 9.069, 6.648, 4.459},
    {"Inceptionv3_b1536", 337.189, 106.402, 73.304, 71.633},
    {"ResNet152_b1280", 562.689, 158.428, 137.304, 135.107},
    {"SENet154_b1024", 876.972, 231.771, 170.748, 159.445},
};

std::string Fraction(double ideal, double time) {
  if (time == 0) return "n/a";
  char text[16];
  std::snprintf(text, sizeof text, "%.3f", ideal / time);
  return text;
}

std::string Ours(const Cell& cell, Policy policy) {
  const Score& s = cell.scores[static_cast<size_t>(policy)];
  if (!cell.possible || !s.done) return "cannot";
  return Fraction(cell.ideal_ns, s.step_ns);
}

void PrintRow(const Published& p, const Cell& cell, const char* host) {
  std::printf("%-18s %9s | %7s %7s %7s | %7s %7s %7s %8s %9s %7s\n", p.net, host,
              Fraction(p.ideal, p.lru).c_str(), Fraction(p.ideal, p.deepum).c_str(),
              Fraction(p.ideal, p.g10).c_str(), Ours(cell, Policy::kLru).c_str(),
              Ours(cell, Policy::kDeepUm).c_str(), Ours(cell, Policy::kG10).c_str(),
              Ours(cell, Policy::kNaive).c_str(), Ours(cell, Policy::kTidemark).c_str(),
              cell.possible ? Fraction(cell.ideal_ns, cell.bound_ns).c_str() : "n/a");
}

const Net* Find(const std::vector<Net>& nets, const std::string& name) {
  for (const Net& net : nets) {
    if (net.named.name == name) return &net;
  }
  return nullptr;
}

void PrintVerdict(const Published& p, const Cell& cell) {
  const Score& s = cell.scores[static_cast<size_t>(Policy::kTidemark)];
  if (!s.done) {
    std::printf("  %-18s does not fit 40 GiB + 128 GiB here: %s\n", p.net,
                (cell.possible ? s.why_not : cell.why_impossible).c_str());
    return;
  }
  const double ours = cell.ideal_ns / s.step_ns, theirs = p.ideal / p.g10;
  std::printf("  %-7s %s: at least the published G10: %.3f against %.3f\n",
              ours >= theirs - 5e-4 ? "met" : "NOT MET", p.net, ours, theirs);
}

struct Row {
  const Published* published;
  const Net* net;
  Cell fitting;    // in the published host memory
  Cell unlimited;  // in any, where that is too small

  bool IsTooLarge() const {
    return static_cast<double>(net->live_peak) >= static_cast<double>(kDevice + kHost);
  }
};

void Fill(bool is_unlimited, Row* row) {
  if (is_unlimited && !row->IsTooLarge()) return;
  Progress("planner", "table 2, " + row->net->named.name);
  core::Machine machine = MachineWith(kDevice, kLinkGbPerS);
  if (!is_unlimited) machine.host_budget = kHost;
  const std::vector<Policy> policies(std::begin(kPolicies), std::end(kPolicies));
  (is_unlimited ? row->unlimited : row->fitting) = ScoreCell(*row->net, machine, policies);
}

void Print(const Row& row) {
  PrintRow(*row.published, row.fitting, "128 GiB");
  if (!row.IsTooLarge()) return;
  std::printf("%-18s           its live bytes are %.0f GiB: the published runs used the SSD\n", "",
              static_cast<double>(row.net->live_peak) / kGiB);
  PrintRow(*row.published, row.unlimited, "unlimited");
}

}  // namespace

void PrintPublished(const std::vector<Net>& nets) {
  std::printf(
      "\nTable 2: the published setting (device 40 GiB, %.3f GB/s each way, host 128 GiB), "
      "fraction of "
      "ideal speed\nPublished runs had an SSD (3.2 GB/s) behind the host; here is none, so steps "
      "whose "
      "live bytes exceed\ndevice + host are also run with an unlimited host.\n"
      "%-18s %9s | %7s %7s %7s | %7s %7s %7s %8s %9s %7s\n",
      kLinkGbPerS, "", "", "publ.", "publ.", "publ.", "here", "here", "here", "here", "here",
      "here");
  std::printf("%-18s %9s | %7s %7s %7s | %7s %7s %7s %8s %9s %7s\n", "net", "host", "LRU", "DeepUM",
              "G10", "LRU", "DeepUM", "G10", "next-use", "Tidemark", "bound");
  std::vector<Row> rows;
  for (const Published& p : kPublished) {
    const Net* net = Find(nets, p.net);
    if (net != nullptr) rows.push_back({&p, net, {}, {}});
  }
  InParallel(2 * rows.size(), [&](size_t i) { Fill(i % 2 != 0, &rows[i / 2]); });
  for (const Row& row : rows) Print(row);
  if (rows.empty()) {
    std::printf("none of its steps is in the trace folder\n");
    return;
  }
  std::printf("\nSummary of table 2 against its target\n");
  for (const Row& row : rows) PrintVerdict(*row.published, row.fitting);
}

}  // namespace tidemark::bench
