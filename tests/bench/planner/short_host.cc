#include "tests/bench/planner/short_host.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>

#include "core/bounds.h"
#include "core/plan.h"
#include "tests/bench/planner/cell.h"
#include "tests/bench/planner/in_parallel.h"
#include "tests/bench/progress.h"

namespace tidemark::bench {
namespace {

constexpr core::Bytes kDevicePercent = 75;  // of the live peak, like the host's
constexpr core::Bytes kHostPercents[] = {30, 50};
constexpr double kHostRatesGb[] = {12, 25};
constexpr size_t kRows = std::size(kHostPercents) * std::size(kHostRatesGb);

struct HostRow {
  int cells = 0;
  int without_plan = 0;  // where the bound does not rule one out
  int done = 0;
  double sum = 0;
  double worst = 1;
  std::string worst_net = "-";
  double most_ms = 0;

  void Add(const HostRow& other) {
    cells += other.cells;
    without_plan += other.without_plan;
    done += other.done;
    sum += other.sum;
    most_ms = std::max(most_ms, other.most_ms);
    if (other.worst >= worst) return;
    worst = other.worst;
    worst_net = other.worst_net;
  }
};

// The tightest bound that is worth its time: the durations are one, too.
double BoundFor(const core::Step& step, const core::Machine& machine,
                const steps::Simulation& run) {
  if (IsCloseToBound(run.ideal_ns, run.step_ns)) return run.ideal_ns;
  const core::TimeBound quick =
      core::FindTimeBound(step, machine, {core::Granularity::kBoundary, /*prices=*/false});
  const auto bound_ns = static_cast<double>(quick.time);
  if (IsCloseToBound(bound_ns, run.step_ns)) return bound_ns;
  return Tightened(step, machine, bound_ns, run.step_ns);
}

HostRow RunCell(const Net& net, const core::Machine& machine) {
  const core::Step& step = net.named.step;
  core::Plan plan;
  std::string why_not;
  HostRow row;
  row.cells = 1;
  const double begin = ThreadMs();
  const bool planned = PlanOf(Policy::kTidemark, step, machine, &plan, &why_not);
  row.most_ms = ThreadMs() - begin;
  const steps::Simulation run =
      planned ? steps::Simulate(step, machine, plan) : steps::Simulation();
  if (!planned || !run.refusal.empty()) {
    const bool is_possible =
        core::FindTimeBound(step, machine).outcome == core::BoundOutcome::kBound;
    row.without_plan = is_possible ? 1 : 0;
    return row;
  }
  row.done = 1;
  row.sum = row.worst = BoundFor(step, machine, run) / run.step_ns;
  row.worst_net = net.named.name;
  return row;
}

struct HostRows {
  HostRow rows[kRows];
};

HostRows RunNet(const Net& net) {
  Progress("planner", "table 6, " + net.named.name);
  HostRows of_net;
  size_t row = 0;
  for (const core::Bytes percent : kHostPercents) {
    for (const double rate : kHostRatesGb) {
      core::Machine machine = MachineWith(net.live_peak / 100 * kDevicePercent, rate);
      machine.host_budget = net.live_peak / 100 * percent;
      of_net.rows[row++] = RunCell(net, machine);
    }
  }
  return of_net;
}

void Print(core::Bytes percent, double rate, const HostRow& row) {
  std::printf("%4llu %% %6g %7d %9d %9.3f %9.3f  %-22s %9.0f\n",
              static_cast<unsigned long long>(percent), rate, row.cells, row.without_plan,
              row.sum / std::max(row.done, 1), row.worst, row.worst_net.c_str(), row.most_ms);
}

}  // namespace

void PrintShortHost(const std::vector<Net>& nets) {
  std::vector<HostRows> of_net(nets.size());
  InParallel(nets.size(), [&](size_t i) { of_net[i] = RunNet(nets[i]); });
  std::printf(
      "\nTable 6: a short host: the device holds %llu %% of the live peak, the host as much of it "
      "as stated\n%6s %6s %7s %9s %9s %9s  %-22s %9s\n",
      static_cast<unsigned long long>(kDevicePercent), "host", "GB/s", "cells", "no plan",
      "bound/t", "worst", "of", "plan ms");
  size_t row = 0;
  for (const core::Bytes percent : kHostPercents) {
    for (const double rate : kHostRatesGb) {
      HostRow all;
      for (const HostRows& some : of_net) all.Add(some.rows[row]);
      Print(percent, rate, all);
      ++row;
    }
  }
}

}  // namespace tidemark::bench
