// Finds an offload plan for a step on a machine: which idle buffers leave the device, when, and
// when they come back. Deterministic: the same input gives the same plan on every computer of one
// kind, however fast; effort is limited by counts. How it searches: planner/README.md. What a plan
// means: plan.h. Threads: none of its own; calls on different objects may run side by side.
//
// More device memory, host memory or rate should never give a slower plan. Replan() from the plan
// before keeps to that, where the links do not slow each other down. MakePlan() alone does so to
// within 0.1 % in all but 1 to 2 % of pairs of machines, on steps too large to be searched to the
// end (from some ten operations and buffers on): where a search ends differs from machine to
// machine. To hold it for all, a search may not depend on the machine, but must pick from a list of
// plans that is the same for all machines of the step, and lists short enough to try were slower by
// several percent. Steps that the tests' exact search can finish are planned within 1 % of its
// optimum.

#ifndef TIDEMARK_CORE_PLANNER_H_
#define TIDEMARK_CORE_PLANNER_H_

#include <cstdint>

#include "core/plan.h"
#include "core/step.h"

namespace tidemark::core {

enum class PlanMode : uint8_t {
  // The fastest step whose peak is within the device budget, whatever it costs: down to the largest
  // operation's working set plus what cannot move. Level `aggressive`.
  kWithinBudget,
  // The smallest peak found with which the step takes at most `slowdown` longer than its ideal
  // time; the device budget is not looked at. Level `normal` is a slowdown of 0.
  kWithinSlowdown,
};

// A step that is longer by at most this share, waits and safepoints together, counts as not slower:
// it is less than steps of one job differ from each other. So a slowdown of 0 gives what can leave
// while the links are free, although each safepoint costs something.
inline constexpr double kNotSlower = 0.001;

struct PlanGoal {
  PlanMode mode = PlanMode::kWithinBudget;
  double slowdown = 0;  // 0.05: at most 5 % longer; below kNotSlower: that
};

// The outcome is also plan->outcome. For kCannot, plan->smallest_device_budget is the least budget
// for which a plan was found with this host budget.
PlanOutcome MakePlan(const Step& step, const Machine& machine, const PlanGoal& goal, Plan* plan);

// Within the budget again, for a step or a machine that changed a little since `previous` was made:
// keeps its choices where they still hold, repairs the rest, and compares with one fresh attempt.
// Costs a small part of MakePlan. `previous` may be any plan, and may not be `plan`.
PlanOutcome Replan(const Step& step, const Machine& machine, const Plan& previous, Plan* plan);

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PLANNER_H_
