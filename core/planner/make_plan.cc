#include <algorithm>

#include "core/planner.h"
#include "core/planner/draft.h"
#include "core/planner/evaluate.h"
#include "core/planner/sweep.h"
#include "core/planner/timeline.h"

namespace tidemark::core {
namespace planner {
namespace {

constexpr uint32_t kPiecesInBudget = 128;
constexpr uint32_t kPasses = 3;
constexpr Bytes kBudgetSteps = 512;  // smallest peaks are found to one part in so many of the whole

PlanOutcome Refuse(Plan* plan, PlanOutcome outcome, const char* reason) {
  plan->outcome = outcome;
  plan->reason = reason;
  plan->moves.Clear();
  plan->out_queue.Clear();
  plan->in_queue.Clear();
  plan->decisions.Clear();
  return outcome;
}

PlanOutcome RefuseMemory(Plan* plan) {
  return Refuse(plan, PlanOutcome::kNoMemory, "there is no host memory to make a plan");
}

class Search {
 public:
  Search(const Step& step, const Machine& machine) : step_(step), machine_(machine) {}

  // Halves the range of budgets until the smallest that keeps the limit is known well enough.
  PlanOutcome RunWithinSlowdown(double slowdown, Plan* best) {
    machine_.device_budget = kNoLimit;
    if (!timeline_.Build(step_, machine_)) return RefuseMemory(best);
    const double limit = static_cast<double>(timeline_.ideal()) * (1 + slowdown);
    PlanOutcome outcome = Run(best);
    Bytes low = timeline_.largest_floor(), high = timeline_.peak();
    const Bytes close = std::max(machine_.chunk_bytes, timeline_.peak() / kBudgetSteps);
    Plan plan;
    while (outcome == PlanOutcome::kPlanned && low + close < high) {
      machine_.device_budget = low + (high - low) / 2;
      const PlanOutcome tried = Run(&plan);
      if (tried == PlanOutcome::kNoMemory) return RefuseMemory(best);
      if (tried != PlanOutcome::kPlanned || static_cast<double>(plan.step_time) > limit) {
        low = machine_.device_budget;
        continue;
      }
      high = std::min(machine_.device_budget, plan.device_peak);
      std::swap(*best, plan);
    }
    return outcome;
  }

  PlanOutcome Run(Plan* best) {
    if (!timeline_.Build(step_, machine_)) return RefuseMemory(best);
    best->outcome = PlanOutcome::kCannot;
    Draft draft;
    Array<double> waits;
    for (uint32_t pass = 0; pass < 2 * kPasses; ++pass) {
      SweepOptions options;
      options.spares = pass < kPasses ? 0 : 0.9;
      options.piece = RoundUp(std::max<Bytes>(machine_.device_budget / kPiecesInBudget, 1),
                              machine_.chunk_bytes);
      options.waits_out = pass == 0 ? nullptr : &waits;
      const Sweep::Result swept = sweep_.Run(timeline_, machine_, options, &draft);
      if (swept == Sweep::Result::kNoMemory) return RefuseMemory(best);
      if (swept == Sweep::Result::kStuck) draft.aways.Clear();
      const PlanOutcome tried = Try(&draft, best);
      if (tried == PlanOutcome::kNoMemory) return RefuseMemory(best);
      if (!waits.CopyFrom(evaluator_.waits_out())) return RefuseMemory(best);
    }
    if (best->outcome != PlanOutcome::kPlanned) {
      best->smallest_device_budget = timeline_.largest_floor();
      return Refuse(best, PlanOutcome::kCannot, "an operation needs more than the budget");
    }
    best->smallest_device_budget = timeline_.largest_floor();
    return best->outcome;
  }

 private:
  PlanOutcome Try(Draft* draft, Plan* best) {
    DraftResult result = CoverDemand(timeline_, machine_, draft);
    if (result == DraftResult::kDone) result = WriteMoves(timeline_, machine_, draft, &trial_);
    if (result == DraftResult::kNoMemory) return PlanOutcome::kNoMemory;
    if (result == DraftResult::kCannot) return PlanOutcome::kCannot;
    const Evaluator::Result valued = evaluator_.Run(timeline_, machine_, &trial_);
    if (valued == Evaluator::Result::kNoMemory) return PlanOutcome::kNoMemory;
    if (valued == Evaluator::Result::kLocked) return PlanOutcome::kCannot;
    trial_.outcome = PlanOutcome::kPlanned;
    if (best->outcome != PlanOutcome::kPlanned || trial_.step_time < best->step_time) {
      std::swap(*best, trial_);
    }
    return PlanOutcome::kPlanned;
  }

  const Step& step_;
  Machine machine_;
  Timeline timeline_;
  Sweep sweep_;
  Evaluator evaluator_;
  Plan trial_;
};

}  // namespace
}  // namespace planner

PlanOutcome MakePlan(const Step& step, const Machine& machine, const PlanGoal& goal, Plan* plan) {
  size_t at = 0;
  const char* wrong = step.Validate(&at);
  if (wrong == nullptr) wrong = machine.Validate();
  if (wrong == nullptr && !(goal.slowdown >= 0)) wrong = "the slow-down is below 0";
  if (wrong != nullptr) return planner::Refuse(plan, PlanOutcome::kBadInput, wrong);
  planner::Search search(step, machine);
  if (goal.mode == PlanMode::kWithinSlowdown) {
    return search.RunWithinSlowdown(goal.slowdown, plan);
  }
  return search.Run(plan);
}

}  // namespace tidemark::core
