#include "tests/bench/planner/modes.h"

#include <cstdio>
#include <string>

#include "core/planner.h"
#include "tests/bench/planner/cell.h"
#include "tests/bench/planner/in_parallel.h"
#include "tests/bench/progress.h"

namespace tidemark::bench {
namespace {

constexpr double kGbPerS = 25;

std::string Percent(double share, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, 100 * share);
  return text;
}

// Peak in % of the live peak and slowdown in %, both as executed.
std::string Within(const Net& net, const core::Machine& machine, const core::PlanGoal& goal,
                   double* plan_ms) {
  core::Plan plan;
  const double begin = ThreadMs();
  const core::PlanOutcome outcome = core::MakePlan(net.named.step, machine, goal, &plan);
  *plan_ms = ThreadMs() - begin;
  if (outcome != core::PlanOutcome::kPlanned) return "no plan";
  const steps::Simulation run = steps::Simulate(net.named.step, machine, plan);
  if (!run.refusal.empty()) return "refused";
  return Percent(static_cast<double>(run.device_peak) / static_cast<double>(net.live_peak), 1) +
         " / " + Percent(run.step_ns / run.ideal_ns - 1, 2);
}

std::string Row(const Net& net) {
  Progress("planner", "table 4, " + net.named.name);
  char text[64];
  std::snprintf(text, sizeof text, "%-21s", net.named.name.c_str());
  std::string row = text;
  const auto add = [&](const core::Machine& machine, const core::PlanGoal& goal) {
    double ms = 0;
    const std::string within = Within(net, machine, goal, &ms);
    std::snprintf(text, sizeof text, " %15s %8.0f", within.c_str(), ms);
    row += text;
  };
  core::Machine machine = MachineWith(core::kNoLimit, kGbPerS);
  for (double slowdown : {0.0, 0.005, 0.05}) {
    add(machine, {core::PlanMode::kWithinSlowdown, slowdown});
  }
  machine.device_budget = steps::WorkingSetFloor(net.named.step, machine);
  add(machine, core::PlanGoal());
  return row;
}

}  // namespace

void PrintModes(const std::vector<Net>& nets) {
  std::printf(
      "\nTable 4: modes at %.0f GB/s: peak in %% of the live peak / slowdown in %%\n0 (level "
      "normal), 0.5 and 5 %%: the smallest peak found that is at most so much slower, where %.1f "
      "%% counts as\nnot slower; aggressive: the smallest budget that has a plan\n"
      "%-21s %15s %8s %15s %8s %15s %8s %15s %8s\n",
      kGbPerS, 100 * core::kNotSlower, "net", "0 %", "plan ms", "0.5 %", "plan ms", "5 %",
      "plan ms", "aggressive", "plan ms");
  std::vector<std::string> rows(nets.size());
  InParallel(nets.size(), [&](size_t i) { rows[i] = Row(nets[i]); });
  for (const std::string& row : rows) std::printf("%s\n", row.c_str());
}

}  // namespace tidemark::bench
