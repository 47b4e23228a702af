#include "tests/bench/planner/cell.h"

#include <algorithm>
#include <ctime>
#include <limits>

#include "core/bounds.h"
#include "core/planner.h"
#include "core/planner/parking.h"
#include "tests/bench/planner/yardsticks.h"
#include "tests/step/step_builder.h"

namespace tidemark::bench {
double ThreadMs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

const char* NameOf(Policy policy) {
  switch (policy) {
    case Policy::kLru:
      return "LRU";
    case Policy::kNaive:
      return "next-use";
    case Policy::kDeepUm:
      return "DeepUM-like";
    case Policy::kG10:
      return "G10-like";
    case Policy::kTidemark:
      return "Tidemark";
  }
  return "?";
}

core::Machine MachineWith(core::Bytes device_budget, double gb_per_s) {
  core::Machine machine;
  machine.device_budget = device_budget;
  steps::SetRates(gb_per_s * 1e9, gb_per_s * 1e9, &machine);
  machine.safepoint = kSafepointNs;
  return machine;
}

namespace {

bool YardstickPlan(Policy policy, const core::Step& step, const core::Machine& machine,
                   core::Plan* plan, std::string* why_not) {
  switch (policy) {
    case Policy::kLru:
      return LruPlan(step, machine, plan, why_not);
    case Policy::kNaive:
      return NextUsePlan(step, machine, plan, why_not);
    case Policy::kDeepUm:
      return DeepUmPlan(step, machine, plan, why_not);
    case Policy::kG10:
      return G10Plan(step, machine, plan, why_not);
    case Policy::kTidemark:
      break;
  }
  return false;
}

}  // namespace

// What no operation uses leaves for good, by our rule: none of the yardsticks says how.
bool PlanOf(Policy policy, const core::Step& step, const core::Machine& machine, core::Plan* plan,
            std::string* why_not) {
  if (policy != Policy::kTidemark) {
    core::planner::Parking parking;
    if (!parking.Init(step, machine)) return false;
    if (parking.empty()) return YardstickPlan(policy, step, machine, plan, why_not);
    const core::Bytes peak = steps::LivePeak(step);
    parking.ParkAtLeast(peak - std::min(peak, machine.device_budget));
    return YardstickPlan(policy, parking.rest(), parking.Left(machine), plan, why_not) &&
           parking.Complete(plan);
  }
  const bool planned =
      core::MakePlan(step, machine, core::PlanGoal(), plan) == core::PlanOutcome::kPlanned;
  if (!planned) *why_not = plan->reason;
  return planned;
}

bool IsCloseToBound(double bound_ns, double step_ns) { return bound_ns >= 0.995 * step_ns; }

double Tightened(const core::Step& step, const core::Machine& machine, double bound_ns,
                 double step_ns) {
  constexpr uint32_t kMuchEffort = 64;
  constexpr double kFar = 0.9;  // of the step's time
  for (const uint32_t effort : {1U, kMuchEffort}) {
    const core::TimeBound bound =
        core::FindTimeBound(step, machine, {core::Granularity::kBoundary, /*prices=*/true, effort});
    if (bound.outcome != core::BoundOutcome::kBound) return bound_ns;
    bound_ns = std::max(bound_ns, static_cast<double>(bound.time));
    if (bound_ns >= kFar * step_ns) break;
  }
  return bound_ns;
}

namespace {

// Looks for a better bound where no policy comes close to the quick one.
void Tighten(const core::Step& step, Cell* cell) {
  double fastest = std::numeric_limits<double>::infinity();
  for (const Score& score : cell->scores) {
    if (score.done && score.device_peak <= cell->machine.device_budget) {
      fastest = std::min(fastest, score.step_ns);
    }
  }
  if (IsCloseToBound(cell->bound_ns, fastest)) return;
  cell->bound_ns = Tightened(step, cell->machine, cell->bound_ns, fastest);
}

}  // namespace

Cell ScoreCell(const Net& net, const core::Machine& machine, const std::vector<Policy>& policies) {
  const core::Step& step = net.named.step;
  Cell cell;
  cell.net = &net;
  cell.machine = machine;
  cell.gb_per_s = machine.out_rate / 1e9;
  for (const core::StepOp& op : step.ops) cell.ideal_ns += static_cast<double>(op.duration);
  const core::TimeBound time = core::FindTimeBound(step, machine);
  cell.possible = time.outcome == core::BoundOutcome::kBound;
  cell.bound_ns = static_cast<double>(time.time);
  cell.why_impossible = time.reason;
  if (!cell.possible) return cell;
  const core::TrafficBound traffic = core::FindTrafficBound(step, machine);
  cell.bound_traffic = traffic.bytes_out + traffic.bytes_in;
  for (Policy policy : policies) {
    Score& score = cell.scores[static_cast<size_t>(policy)];
    core::Plan plan;
    const double begin = ThreadMs();
    const bool planned = PlanOf(policy, step, machine, &plan, &score.why_not);
    score.plan_ms = ThreadMs() - begin;
    if (!planned) continue;
    const steps::Simulation run = steps::Simulate(step, machine, plan);
    score.done = run.refusal.empty();
    score.why_not = run.refusal;
    score.step_ns = run.step_ns;
    score.traffic = run.bytes_out + run.bytes_in;
    score.device_peak = run.device_peak;
    score.host_peak = run.host_peak;
    score.promised_ns = static_cast<double>(plan.step_time);
    score.promised_peak = plan.device_peak;
    score.run = run;
  }
  Tighten(step, &cell);
  return cell;
}

}  // namespace tidemark::bench
