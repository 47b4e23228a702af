// One cell of the planner scoreboard: a net on a machine, the bounds, and what each policy makes of
// it in the simulator. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_CELL_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_CELL_H_

#include <string>
#include <vector>

#include "core/plan.h"
#include "core/step.h"
#include "tests/bench/planner/nets.h"
#include "tests/step/simulator.h"

namespace tidemark::bench {

enum class Policy : uint8_t { kLru, kNaive, kDeepUm, kG10, kTidemark };
inline constexpr Policy kPolicies[] = {Policy::kLru, Policy::kNaive, Policy::kDeepUm, Policy::kG10,
                                       Policy::kTidemark};
const char* NameOf(Policy policy);

struct Score {
  bool done = false;
  std::string why_not;  // one sentence, if not done
  double step_ns = 0;
  double plan_ms = 0;  // processor time of one call
  core::Bytes traffic = 0;
  core::Bytes device_peak = 0;
  core::Bytes host_peak = 0;
  double promised_ns = 0;  // ours only, like the next
  core::Bytes promised_peak = 0;
  steps::Simulation run;  // without timeline
};

struct Cell {
  const Net* net = nullptr;
  int cap_percent = 0;  // of the live peak
  double gb_per_s = 0;
  core::Machine machine;
  bool possible = false;  // the cap is not below what one operation needs, nor the host too small
  std::string why_impossible;
  double ideal_ns = 0;
  double bound_ns = 0;
  core::Bytes bound_traffic = 0;
  Score scores[std::size(kPolicies)];
};

// 20 us is what remapping at a quiet moment costs: draining the stream and a few driver calls.
inline constexpr core::Nanoseconds kSafepointNs = 20000;

// Processor time of this thread: other programs on the machine do not count.
double ThreadMs();
core::Machine MachineWith(core::Bytes device_budget, double gb_per_s);
// Whether a step's time is so close to a bound that no tighter bound is worth looking for.
bool IsCloseToBound(double bound_ns, double step_ns);
// The bound with what prices add (core/bounds.h), if they do; takes up to a second, and some
// seconds where a step of `step_ns` is still far above it.
double Tightened(const core::Step& step, const core::Machine& machine, double bound_ns,
                 double step_ns);
Cell ScoreCell(const Net& net, const core::Machine& machine, const std::vector<Policy>& policies);
// Makes the policy's plan; false: there is none, and *why_not says why.
bool PlanOf(Policy policy, const core::Step& step, const core::Machine& machine, core::Plan* plan,
            std::string* why_not);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_CELL_H_
