#include <algorithm>
#include <utility>

#include "core/planner.h"
#include "core/planner/parking.h"
#include "core/planner/search.h"

namespace tidemark::core {
namespace planner {
namespace {

constexpr Bytes kBudgetSteps = 512;  // budgets are found to one part in so many of the live peak
constexpr uint64_t kHalvingWork = Search::kMostWork / 5 * 2;
// Recipes while looking for a budget, cheapest first.
constexpr uint32_t kFewRecipes[] = {Search::kByDemand, 0, 1};

PlanOutcome Refuse(Plan* plan, PlanOutcome outcome, const char* reason) {
  plan->outcome = outcome;
  plan->reason = reason;
  plan->moves.Clear();
  plan->out_queue.Clear();
  plan->in_queue.Clear();
  plan->parked.Clear();
  plan->decisions.Clear();
  return outcome;
}

PlanOutcome RefuseMemory(Plan* plan) {
  return Refuse(plan, PlanOutcome::kNoMemory, "there is no host memory to make a plan");
}

const char* WrongInput(const Step& step, const Machine& machine, const PlanGoal& goal) {
  size_t at = 0;
  const char* wrong = step.Validate(&at);
  if (wrong == nullptr) wrong = machine.Validate();
  if (wrong == nullptr && !(goal.slowdown >= 0)) wrong = "the slow-down is below 0";
  return wrong;
}

class Planning {
 public:
  explicit Planning(Plan* plan) : plan_(plan) {}

  PlanOutcome Init(const Step& step, const Machine& machine, PlanMode mode) {
    asked_budget_ = machine.device_budget;
    if (!parking_.Init(step, machine)) return RefuseMemory(plan_);
    const Step& rest = parking_.empty() ? step : parking_.rest();
    if (!search_.Init(rest, machine)) return RefuseMemory(plan_);
    if (parking_.empty()) return PlanOutcome::kPlanned;
    const Bytes all = search_.timeline().peak() + parking_.all_bytes();
    if (mode == PlanMode::kWithinBudget) {
      parking_.ParkAtLeast(all - std::min(all, machine.device_budget));
    }
    const Machine left = parking_.Left(machine);
    asked_budget_ = left.device_budget;
    return search_.Init(rest, left) ? PlanOutcome::kPlanned : RefuseMemory(plan_);
  }

  PlanOutcome WithinBudget() {
    if (search_.TryRecipes() == Found::kNoMemory) return RefuseMemory(plan_);
    if (search_.TryAtRandom() == Found::kNoMemory) return RefuseMemory(plan_);
    // Small steps are polished for long, and that best from a draft by prices. In large ones whose
    // drafts by prices are likely to be best, Improve and Polish only add to them.
    const bool first = search_.TrustsPrices();
    if (first && search_.TryPrices() == Found::kNoMemory) return RefuseMemory(plan_);
    if (search_.Improve() == Found::kNoMemory) return RefuseMemory(plan_);
    const bool then = !first && search_.IsSmall();
    if (then && search_.TryPrices() == Found::kNoMemory) return RefuseMemory(plan_);
    if (search_.Polish() == Found::kNoMemory) return RefuseMemory(plan_);
    const bool last = !first && !then;
    if (last && search_.TryPrices() == Found::kNoMemory) return RefuseMemory(plan_);
    return search_.has_plan() ? Finish() : Cannot();
  }

  PlanOutcome WithinSlowdown(double slowdown) {
    const Timeline& timeline = search_.timeline();
    const double limit =
        static_cast<double>(timeline.ideal()) * (1 + std::max(slowdown, kNotSlower));
    const double not_slower = static_cast<double>(timeline.ideal()) * (1 + kNotSlower);
    const auto holds = [limit](const Plan& plan) {
      return static_cast<double>(plan.step_time) <= limit;
    };
    const Bytes low = std::max<Bytes>(timeline.largest_floor(), 1) - 1;
    // A step may hold no bytes at all.
    const Bytes high = std::max<Bytes>(timeline.peak(), 1);
    if (Halve(holds, low, high) == Found::kNoMemory) return RefuseMemory(plan_);
    if (!search_.has_plan()) return Cannot();
    // The first plan that held was taken: is there a faster one with its peak?
    search_.SetBudget(search_.best().device_peak);
    for (const uint32_t recipe : kFewRecipes) {
      if (static_cast<double>(search_.best().step_time) <= not_slower) break;
      if (search_.TryRecipe(recipe) == Found::kNoMemory) return RefuseMemory(plan_);
    }
    return Finish();
  }

  PlanOutcome From(const Plan& previous) {
    if (search_.TryPrevious(previous) == Found::kNoMemory) return RefuseMemory(plan_);
    const bool is_ideal =
        search_.has_plan() && search_.best().step_time <= search_.timeline().ideal();
    if (is_ideal) return Finish();
    if (search_.TryQuick(previous.recipe) == Found::kNoMemory) return RefuseMemory(plan_);
    return search_.has_plan() ? Finish() : WithinBudget();
  }

 private:
  // Halves the range of budgets until the smallest in (low, high] with a plan that `holds` is known
  // well enough for the time it takes; leaves that plan in search_.
  template <typename Holds>
  Found Halve(Holds holds, Bytes low, Bytes high) {
    const Bytes close = std::max<Bytes>(search_.timeline().peak() / kBudgetSteps, 1);
    // Where the plan that was asked for was looked for in vain, something is left for this.
    const uint64_t most = std::max(Search::kMostWork, search_.spent() + kHalvingWork);
    Plan best;
    bool found = false;
    for (Bytes budget = high; high > low; budget = low + (high - low) / 2) {
      const Found tried = TryBudget(budget, found ? most : ~uint64_t{0}, holds);
      if (tried == Found::kNoMemory) return tried;
      if (tried == Found::kPlan) {
        high = budget;
        std::swap(best, *search_.mutable_best());
        found = true;
      } else if (budget == high) {
        break;  // not even the largest
      } else {
        low = budget;
      }
      if (high - low <= close || (found && search_.IsSpent(most))) break;
    }
    std::swap(best, *search_.mutable_best());
    search_.SetHasPlan(found);
    smallest_ = high;
    return found ? Found::kPlan : Found::kNothing;
  }

  // A few recipes, up to the first that holds, or until so much work is spent.
  template <typename Holds>
  Found TryBudget(Bytes budget, uint64_t most, Holds holds) {
    search_.SetBudget(budget);
    search_.Restart();
    for (const uint32_t recipe : kFewRecipes) {
      if (search_.TryRecipe(recipe) == Found::kNoMemory) return Found::kNoMemory;
      if (search_.has_plan() && holds(search_.best())) return Found::kPlan;
      if (search_.IsSpent(most)) break;
    }
    return Found::kNothing;
  }

  PlanOutcome Finish() {
    Plan* best = search_.mutable_best();
    if (best->step_time >= kEndlessStep) {
      return Refuse(plan_, PlanOutcome::kBadInput,
                    "the links are so slow that the step would take more than 2^62 ns");
    }
    if (!Decide(search_.timeline(), search_.machine(), best)) return RefuseMemory(plan_);
    best->outcome = PlanOutcome::kPlanned;
    best->reason = "";
    best->smallest_device_budget = search_.timeline().largest_floor();
    if (!parking_.Complete(best)) return RefuseMemory(plan_);
    std::swap(*plan_, *best);
    return plan_->outcome;
  }

  PlanOutcome Cannot() {
    const Timeline& timeline = search_.timeline();
    const Bytes floor = timeline.largest_floor();
    smallest_ = floor;
    const auto any = [](const Plan&) { return true; };
    const bool is_host_limited = search_.machine().host_budget != kNoLimit;
    if (is_host_limited && Halve(any, std::max(asked_budget_, std::max<Bytes>(floor, 1) - 1),
                                 timeline.peak()) == Found::kNoMemory) {
      return RefuseMemory(plan_);
    }
    plan_->smallest_device_budget = smallest_ + parking_.kept_bytes();
    return Refuse(plan_, PlanOutcome::kCannot,
                  asked_budget_ < floor && parking_.kept_bytes() == 0
                      ? "the largest operation's working set, with what cannot move, is above the "
                        "device budget"
                      : "the host budget does not hold what has to leave the device");
  }

  Plan* plan_;
  Parking parking_;
  Search search_;  // of what is left to plan
  Bytes asked_budget_ = 0;
  Bytes smallest_ = 0;  // budget that Halve found, or the largest it was given
};

}  // namespace
}  // namespace planner

PlanOutcome MakePlan(const Step& step, const Machine& machine, const PlanGoal& goal, Plan* plan) {
  const char* wrong = planner::WrongInput(step, machine, goal);
  if (wrong != nullptr) return planner::Refuse(plan, PlanOutcome::kBadInput, wrong);
  planner::Planning planning(plan);
  const PlanOutcome ready = planning.Init(step, machine, goal.mode);
  if (ready != PlanOutcome::kPlanned) return ready;
  if (goal.mode == PlanMode::kWithinSlowdown) return planning.WithinSlowdown(goal.slowdown);
  return planning.WithinBudget();
}

PlanOutcome Replan(const Step& step, const Machine& machine, const Plan& previous, Plan* plan) {
  const char* wrong = planner::WrongInput(step, machine, {});
  if (wrong != nullptr) return planner::Refuse(plan, PlanOutcome::kBadInput, wrong);
  planner::Planning planning(plan);
  const PlanOutcome ready = planning.Init(step, machine, PlanMode::kWithinBudget);
  return ready == PlanOutcome::kPlanned ? planning.From(previous) : ready;
}

}  // namespace tidemark::core
