#include "tests/bench/planner/tables.h"

#include <algorithm>
#include <cstdio>

namespace tidemark::bench {
namespace {

constexpr size_t kOurs = static_cast<size_t>(Policy::kTidemark);

const Score& Ours(const Cell& cell) { return cell.scores[kOurs]; }

struct Mean {
  double sum = 0;
  double least = 1e300;
  double most = 0;
  size_t count = 0;
  void Add(double value) {
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
    ++count;
  }
  double value() const { return sum / static_cast<double>(count); }
};

// A number, or n/a where no cell counts.
std::string Text(bool known, double value, int digits = 3) {
  if (!known) return "n/a";
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Of(const Mean& mean, int digits = 3) {
  return Text(mean.count != 0, mean.count == 0 ? 0 : mean.value(), digits);
}

std::string Ratio(const Cell& cell, Policy policy) {
  const Score& s = cell.scores[static_cast<size_t>(policy)];
  return Text(s.done, cell.bound_ns / s.step_ns);
}

double FastestOther(const Cell& cell) {
  double fastest = 1e300;
  for (Policy policy : kPolicies) {
    const Score& s = cell.scores[static_cast<size_t>(policy)];
    if (policy != Policy::kTidemark && s.done) fastest = std::min(fastest, s.step_ns);
  }
  return fastest;
}

bool Agree(const Cell& cell) { return cell.bound_ns <= 1.001 * cell.ideal_ns; }

double Percent(double part, double whole) { return 100 * part / whole; }

void PrintCellHead() {
  std::printf("%-20s %4s %4s %11s %10s %10s %10s %8s %7s %5s %8s %6s %5s\n", "net", "cap", "GB/s",
              "bound/ideal", "bound/time", "ideal/time", "traffic/bd", "peak/cap", "plan ms", "LRU",
              "next-use", "DeepUM", "G10");
}

void PrintCell(const Cell& c) {
  std::printf("%-20s %3d%% %4.0f ", c.net->named.name.c_str(), c.cap_percent, c.gb_per_s);
  if (!c.possible) {
    std::printf("cannot: %s\n", c.why_impossible.c_str());
    return;
  }
  const Score& s = Ours(c);
  const bool traffic = s.done && c.bound_traffic != 0;
  std::printf("%11.3f %10s %10s %10s %8s %7.1f %5s %8s %6s %5s%s%s\n", c.bound_ns / c.ideal_ns,
              Ratio(c, Policy::kTidemark).c_str(), Text(s.done, c.ideal_ns / s.step_ns).c_str(),
              Text(traffic,
                   static_cast<double>(s.traffic) /
                       static_cast<double>(std::max<core::Bytes>(c.bound_traffic, 1)),
                   2)
                  .c_str(),
              Text(s.done, static_cast<double>(s.device_peak) /
                               static_cast<double>(c.machine.device_budget))
                  .c_str(),
              s.plan_ms, Ratio(c, Policy::kLru).c_str(), Ratio(c, Policy::kNaive).c_str(),
              Ratio(c, Policy::kDeepUm).c_str(), Ratio(c, Policy::kG10).c_str(), s.done ? "" : "  ",
              s.why_not.c_str());
}

// The cells by bound/time, worst first; those where ours did not run stand before all.
std::vector<const Cell*> WorstFirst(const std::vector<Cell>& cells) {
  std::vector<const Cell*> order;
  for (const Cell& c : cells) {
    if (c.possible) order.push_back(&c);
  }
  auto score = [](const Cell* c) { return Ours(*c).done ? c->bound_ns / Ours(*c).step_ns : -1; };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Cell* a, const Cell* b) { return score(a) < score(b); });
  return order;
}

void PrintTarget(const char* what, bool met, const std::string& figure) {
  std::printf("  %-7s %s: %s\n", met ? "met" : "NOT MET", what, figure.c_str());
}

// The two time targets over one group of cells.
void PrintTimeTargets(const std::vector<Cell>& cells, bool generated) {
  Mean over, elsewhere;
  size_t within = 0;
  for (const Cell& c : cells) {
    if (!c.possible || !Ours(c).done || c.net->generated != generated) continue;
    if (Agree(c)) {
      over.Add(Ours(c).step_ns / c.ideal_ns);
      within += Ours(c).step_ns <= 1.01 * c.ideal_ns ? 1 : 0;
    } else {
      elsewhere.Add(c.bound_ns / Ours(c).step_ns);
    }
  }
  const std::string group = generated ? "generators" : "traces";
  if (over.count != 0) {
    PrintTarget((group + ", where bound and ideal agree: at most 1 % over ideal").c_str(),
                within == over.count,
                std::to_string(within) + " of " + std::to_string(over.count) + " cells; worst " +
                    Text(true, Percent(over.most - 1, 1), 2) + " % over");
  }
  if (elsewhere.count == 0) return;
  PrintTarget((group + ", elsewhere: mean bound/time at least 0.95").c_str(),
              elsewhere.value() >= 0.95,
              Of(elsewhere) + " over " + std::to_string(elsewhere.count) + " cells");
  PrintTarget((group + ", elsewhere: worst bound/time at least 0.88").c_str(),
              elsewhere.least >= 0.88, Text(true, elsewhere.least));
}

// A name of a file from outside, fit for a CSV field.
std::string CsvField(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

}  // namespace

void PrintNets(const std::vector<Net>& nets) {
  std::printf("\nNets: one training iteration each\n%-21s %6s %8s %13s %12s %10s\n", "net", "ops",
              "buffers", "live peak GB", "all GB", "ideal ms");
  for (const Net& net : nets) {
    double ideal = 0, all = 0;
    for (const core::StepOp& op : net.named.step.ops) ideal += static_cast<double>(op.duration);
    for (const core::StepBuffer& b : net.named.step.buffers) all += static_cast<double>(b.bytes);
    std::printf("%-21s %6zu %8zu %13.2f %12.1f %10.1f\n", net.named.name.c_str(),
                net.named.step.ops.size(), net.named.step.buffers.size(),
                static_cast<double>(net.live_peak) / 1e9, all / 1e9, ideal / 1e6);
  }
}

void PrintByNet(const std::vector<Cell>& cells) {
  std::printf(
      "\nTable 1a: by net, over caps 60/50/40/30/20 %% of the live peak x 6/12/25/55 GB/s\n"
      "%-39s | mean bound/time                        | ours\n"
      "%-21s %5s %11s | %8s %6s %6s %8s %6s | %6s %10s %10s %7s\n",
      "", "net", "cells", "bound/ideal", "Tidemark", "G10", "DeepUM", "next-use", "LRU", "worst",
      "ideal/time", "traffic/bd", "plan ms");
  for (size_t i = 0; i < cells.size();) {
    const Net* net = cells[i].net;
    Mean by[std::size(kPolicies)], bound, ideal, traffic, plan;
    for (; i < cells.size() && cells[i].net == net; ++i) {
      const Cell& c = cells[i];
      if (!c.possible) continue;
      bound.Add(c.bound_ns / c.ideal_ns);
      for (size_t p = 0; p < std::size(kPolicies); ++p) {
        if (c.scores[p].done) by[p].Add(c.bound_ns / c.scores[p].step_ns);
      }
      plan.Add(Ours(c).plan_ms);
      if (!Ours(c).done) continue;
      ideal.Add(c.ideal_ns / Ours(c).step_ns);
      if (c.bound_traffic == 0) continue;
      traffic.Add(static_cast<double>(Ours(c).traffic) / static_cast<double>(c.bound_traffic));
    }
    auto of = [&](Policy p) { return Of(by[static_cast<size_t>(p)]); };
    std::printf("%-21s %5zu %11s | %8s %6s %6s %8s %6s | %6s %10s %10s %7s\n",
                net->named.name.c_str(), bound.count, Of(bound).c_str(),
                of(Policy::kTidemark).c_str(), of(Policy::kG10).c_str(),
                of(Policy::kDeepUm).c_str(), of(Policy::kNaive).c_str(), of(Policy::kLru).c_str(),
                Text(by[kOurs].count != 0, by[kOurs].least).c_str(), Of(ideal).c_str(),
                Of(traffic, 2).c_str(), Of(plan, 1).c_str());
  }
}

void PrintByCapAndRate(const std::vector<Cell>& cells) {
  std::printf(
      "\nTable 1b: ours by cap and rate: mean bound/time, mean ideal/time, worst bound/time\n"
      "%-5s",
      "cap");
  for (double rate : kRatesGb) std::printf("        %3.0f GB/s       ", rate);
  std::printf("\n");
  for (int cap : kCapsPercent) {
    std::printf("%3d %% ", cap);
    for (double rate : kRatesGb) {
      Mean bound, ideal;
      for (const Cell& c : cells) {
        if (c.cap_percent != cap || c.gb_per_s != rate || !c.possible || !Ours(c).done) continue;
        bound.Add(c.bound_ns / Ours(c).step_ns);
        ideal.Add(c.ideal_ns / Ours(c).step_ns);
      }
      std::printf("  %s %s %s  ", Of(bound).c_str(), Of(ideal).c_str(),
                  Text(bound.count != 0, bound.least).c_str());
    }
    std::printf("\n");
  }
}

void PrintWorst(const std::vector<Cell>& cells, size_t count) {
  const std::vector<const Cell*> order = WorstFirst(cells);
  std::printf("\nTable 1c: ours, the %zu worst cells (bound/time; other policies likewise)\n",
              count);
  PrintCellHead();
  for (size_t i = 0; i < std::min(count, order.size()); ++i) PrintCell(*order[i]);
  std::printf(
      "\nWhere their time goes, in %% of the step. The plan is loose where traffic/bound is above "
      "1 or "
      "a link\nidles that could have worked ahead; the bound is loose where both are at their "
      "limits.\n"
      "%-21s %4s %5s %11s %8s %8s %9s %9s %10s\n",
      "net", "cap", "GB/s", "traffic/bd", "out busy", "in busy", "wait out", "wait in",
      "safepoints");
  for (size_t i = 0; i < std::min(count, order.size()); ++i) {
    const Cell& c = *order[i];
    const steps::Simulation& r = Ours(c).run;
    if (!Ours(c).done) continue;
    std::printf("%-21s %3d%% %5.0f %11.2f %8.1f %8.1f %9.1f %9.1f %10.1f\n",
                c.net->named.name.c_str(), c.cap_percent, c.gb_per_s,
                static_cast<double>(Ours(c).traffic) /
                    static_cast<double>(std::max<core::Bytes>(c.bound_traffic, 1)),
                Percent(r.out_busy_ns, r.step_ns), Percent(r.in_busy_ns, r.step_ns),
                Percent(r.wait_out_ns, r.step_ns), Percent(r.wait_in_ns, r.step_ns),
                Percent(r.safepoint_ns, r.step_ns));
  }
}

void PrintBeaten(const std::vector<Cell>& cells, size_t count) {
  std::vector<const Cell*> order;
  for (const Cell& c : cells) {
    if (c.possible && Ours(c).done && FastestOther(c) < Ours(c).step_ns * 0.999)
      order.push_back(&c);
  }
  std::printf("\nTable 1d: cells where another policy is more than 0.1 %% faster than ours: %zu\n",
              order.size());
  if (order.empty()) return;
  std::stable_sort(order.begin(), order.end(), [](const Cell* a, const Cell* b) {
    return FastestOther(*a) / Ours(*a).step_ns < FastestOther(*b) / Ours(*b).step_ns;
  });
  PrintCellHead();
  for (size_t i = 0; i < std::min(count, order.size()); ++i) PrintCell(*order[i]);
}

void PrintEvery(const std::vector<Cell>& cells) {
  std::printf("\nTable 1, every cell\n");
  PrintCellHead();
  for (const Cell& c : cells) PrintCell(c);
}

void PrintSummary(const std::vector<Cell>& cells) {
  std::printf("\nSummary of table 1 against its targets\n");
  PrintTimeTargets(cells, false);
  PrintTimeTargets(cells, true);
  size_t failed = 0, above = 0, below_bound = 0, bound_by_links = 0;
  Mean plan, promise;
  for (const Cell& c : cells) {
    if (!c.possible) continue;
    plan.Add(Ours(c).plan_ms);
    bound_by_links += c.bound_ns >= 1.2 * c.ideal_ns && c.bound_ns <= 3 * c.ideal_ns ? 1 : 0;
    failed += Ours(c).done ? 0 : 1;
    above += Ours(c).done && Ours(c).device_peak > Ours(c).promised_peak ? 1 : 0;
    if (Ours(c).done) promise.Add(std::abs(Ours(c).step_ns / Ours(c).promised_ns - 1));
    for (const Score& s : c.scores) below_bound += s.done && s.step_ns < c.bound_ns - 1 ? 1 : 0;
  }
  if (plan.count == 0) return;
  PrintTarget("a plan for every cap above the largest operation", failed == 0,
              std::to_string(failed) + " cells without one");
  PrintTarget("the promised peak is kept", above == 0, std::to_string(above) + " cells above it");
  PrintTarget("no policy beats the bound", below_bound == 0,
              std::to_string(below_bound) + " runs below it");
  PrintTarget("a plan costs at most 200 ms", plan.most <= 200,
              Text(true, plan.most, 1) + " ms at most");
  std::printf("          %zu cells have a bound of 1.2 to 3 x ideal\n", bound_by_links);
  std::printf("          promised and simulated step time differ by %s %% at most\n",
              Text(promise.count != 0, Percent(promise.most, 1), 4).c_str());
}

bool WriteCsv(const std::vector<Cell>& cells, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) return false;
  std::fprintf(file,
               "net,cap_percent,gb_per_s,ideal_ns,bound_ns,bound_traffic_bytes,policy,step_ns,"
               "traffic_bytes,device_peak_bytes,host_peak_bytes,plan_ms,why_not\n");
  for (const Cell& c : cells) {
    for (Policy policy : kPolicies) {
      const Score& s = c.scores[static_cast<size_t>(policy)];
      std::fprintf(file, "%s,%d,%g,%.0f,%.0f,%llu,%s,%.0f,%llu,%llu,%llu,%.3f,%s\n",
                   CsvField(c.net->named.name).c_str(), c.cap_percent, c.gb_per_s, c.ideal_ns,
                   c.bound_ns, static_cast<unsigned long long>(c.bound_traffic), NameOf(policy),
                   s.step_ns, static_cast<unsigned long long>(s.traffic),
                   static_cast<unsigned long long>(s.device_peak),
                   static_cast<unsigned long long>(s.host_peak), s.plan_ms,
                   CsvField(c.possible ? s.why_not : c.why_impossible).c_str());
    }
  }
  return std::fclose(file) == 0;
}

}  // namespace tidemark::bench
