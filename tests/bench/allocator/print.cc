// The tables of tests/bench/allocator/score.h. Threads: none.

#include <cmath>
#include <cstdio>

#include "tests/bench/allocator/measure.h"
#include "tests/bench/allocator/score.h"

namespace tidemark::bench {
namespace {

constexpr double kPhysicalRecorded = 1.005;
constexpr double kPhysicalGenerated = 1.01;
constexpr double kRecordedTolerance = 0.005;
constexpr int kSlackOfTarget = 2;  // index of 2 %
constexpr size_t kWorstShown = 3;

const char kOurs[] = "Tidemark";
const char kCapacity[] = "capacity";

struct Worst {
  double figure;
  std::string text;
};

// Two capacities that differ by less were not told apart.
double CapacityStep(Bytes requested) {
  return static_cast<double>(SearchStep(requested)) / static_cast<double>(requested);
}

std::string Fixed(double value, int digits) {
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Remaps(double value) { return value < 0 ? "fails" : Fixed(value, value < 100 ? 1 : 0); }

// Worst first; a target is met when `met` says so of all.
void PrintTarget(const char* target, std::vector<Worst> missed, size_t rows) {
  if (rows == 0) {
    std::printf("  not judged  %s: no such rows in this run\n", target);
    return;
  }
  std::printf("  %s  %s (%zu of %zu rows)\n", missed.empty() ? "met       " : "NOT MET   ", target,
              rows - missed.size(), rows);
  std::stable_sort(missed.begin(), missed.end(),
                   [](const Worst& a, const Worst& b) { return a.figure > b.figure; });
  for (size_t i = 0; i < missed.size() && i < kWorstShown; ++i) {
    std::printf("                %s\n", missed[i].text.c_str());
  }
  if (missed.size() > kWorstShown) {
    std::printf("                and %zu more\n", missed.size() - kWorstShown);
  }
}

// What explains a figure that cannot be reached.
std::string FloorsOf(const std::string& trace, const std::vector<Row>& rows) {
  std::string text;
  for (const Row& row : rows) {
    if (row.trace != trace || !row.is_floor || row.policy == kPacking) continue;
    text += "; " + row.policy + " " + Fixed(row.physical, 4);
    if (row.maps) text += " with " + Fixed(row.mapped_unlimited, 0) + " chunks mapped per step";
  }
  return text;
}

void PrintPhysical(const std::vector<Row>& rows, bool recorded, double limit, const char* target) {
  std::vector<Worst> missed;
  size_t judged = 0;
  for (const Row& row : rows) {
    if (row.policy != kOurs || row.recorded != recorded) continue;
    if (recorded && row.requested <= kGiB) continue;
    ++judged;
    if (row.physical < 0 || row.repeated < 0) {
      missed.push_back({HUGE_VAL, row.trace + ": was not completed"});
      continue;
    }
    const double figure = std::max(row.physical, row.repeated);
    if (figure <= limit) continue;
    missed.push_back({figure, row.trace + ": " + Fixed(figure, 4) + FloorsOf(row.trace, rows)});
  }
  PrintTarget(target, missed, judged);
}

void PrintAgainstExpandable(const std::vector<Row>& rows) {
  std::vector<Worst> missed;
  size_t judged = 0;
  for (const Row& ours : rows) {
    if (ours.policy != kOurs) continue;
    ++judged;
    if (ours.physical < 0 || ours.repeated < 0) {
      missed.push_back({HUGE_VAL, ours.trace + ": was not completed"});
      continue;
    }
    double more = 0;
    std::string text;
    const double step = CapacityStep(ours.requested);
    const auto consider = [&](double mine, const Row& theirs, double other, const char* what) {
      if (mine - other <= std::max(more, what == kCapacity ? step : 0)) return;
      more = mine - other;
      text = ours.trace + ": " + what + " " + Fixed(mine, 4) + ", " + theirs.policy + " " +
             Fixed(other, 4);
    };
    for (const Row& row : rows) {
      if (row.trace != ours.trace || !row.policy.starts_with("expandable")) continue;
      if (row.physical < 0 || row.repeated < 0) continue;  // cannot at all
      consider(ours.physical, row, row.physical, "physical");
      consider(ours.repeated, row, row.repeated, "repeated");
      consider(ours.capacity, row, row.capacity, kCapacity);
    }
    if (more > 0) missed.push_back({more, text});
  }
  PrintTarget(
      "never more than expandable segments: physical, repeated, capacity (to the step of its "
      "search)",
      missed, judged);
}

void PrintRemaps(const std::vector<Row>& rows) {
  std::vector<Worst> missed;
  size_t judged = 0;
  for (const Row& row : rows) {
    if (row.policy != kOurs || !row.fixed_shape) continue;
    ++judged;
    const double remaps = row.remaps[kSlackOfTarget];
    if (remaps != 0) missed.push_back({remaps, row.trace + ": " + Remaps(remaps)});
  }
  PrintTarget("0 remaps per steady iteration at 2 % slack, fixed shapes", missed, judged);
}

void PrintRecordedPeaks(const std::vector<Row>& rows) {
  std::vector<Worst> missed;
  size_t judged = 0;
  for (const Row& row : rows) {
    if (row.policy != "PyTorch native" || row.recorded_peak == 0 || row.physical < 0) continue;
    ++judged;
    const double simulated = row.physical * static_cast<double>(row.requested);
    const double off = simulated / static_cast<double>(row.recorded_peak) - 1;
    if (off > kRecordedTolerance || off < -kRecordedTolerance) {
      missed.push_back(
          {off < 0 ? -off : off, row.trace + ": off by " + Fixed(100 * off, 2) + " %"});
    }
  }
  PrintTarget("the native model within 0.5 % of the recorded peak", missed, judged);
}

std::string Share(double value) { return value < 0 ? "-" : Fixed(value, 4); }

}  // namespace

void PrintHead() {
  std::printf("%-22s %8s %8s %8s  %-33s %6s %8s %8s\n", "", "physical", "repeated", "capacity",
              "chunks mapped per steady step at", "burst", "internal", "external");
  std::printf("%-22s %8s %8s %8s  %8s %6s %5s %5s %5s %6s %8s %8s\n", "trace (peak requested)",
              "/peak", "/peak", "/peak", "no limit", "0 %", "0.5 %", "2 %", "5 %", "chunks", "frag",
              "frag");
  std::fflush(stdout);
}

void PrintRows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (&row == &rows.front()) {
      const std::string size = Fixed(static_cast<double>(row.requested) / double{kGiB}, 2);
      std::printf("%s (%s GiB)\n", row.trace.c_str(), size.c_str());
    }
    std::printf("  %-20s %8s %8s %8s", row.policy.c_str(), Share(row.physical).c_str(),
                Share(row.repeated).c_str(), Share(row.capacity).c_str());
    if (!row.is_floor) {
      std::printf("  %8s %6s %5s %5s %5s %6llu %8.4f %8.4f", Remaps(row.mapped_unlimited).c_str(),
                  Remaps(row.remaps[0]).c_str(), Remaps(row.remaps[1]).c_str(),
                  Remaps(row.remaps[2]).c_str(), Remaps(row.remaps[3]).c_str(),
                  static_cast<unsigned long long>(row.burst), row.internal, row.external);
    } else if (row.maps) {
      std::printf("  %8s %6s %5s %5s %5s %6llu", Remaps(row.mapped_unlimited).c_str(), "", "", "",
                  "", static_cast<unsigned long long>(row.burst));
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

void PrintTargets(const std::vector<Row>& rows) {
  std::printf("\nTargets of Tidemark's rows\n");
  PrintPhysical(rows, true, kPhysicalRecorded, "physical <= 1.005 on recorded traces above 1 GiB");
  PrintPhysical(rows, false, kPhysicalGenerated, "physical <= 1.01 on generated traces");
  PrintAgainstExpandable(rows);
  PrintRemaps(rows);
  std::printf("Check of the yardsticks\n");
  PrintRecordedPeaks(rows);
}

}  // namespace tidemark::bench
