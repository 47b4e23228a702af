// What the planner promises, held against the simulator on random steps and machines: every plan
// is executed, and takes the time, the bytes and the peaks it says. A failing seed reproduces the
// run.

#include <gtest/gtest.h>

#include <cmath>

#include "core/bounds.h"
#include "core/planner.h"
#include "tests/step/any_step.h"
#include "tests/step/model_step.h"
#include "tests/step/simulator.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {
namespace {

using core::Bytes;
using core::Machine;
using core::Plan;
using core::PlanGoal;
using core::PlanOutcome;
using core::Step;

void ExpectPromisesHold(const Step& step, const Machine& machine, const Plan& plan) {
  const Simulation s = Simulate(step, machine, plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_LE(s.device_peak, plan.device_peak);
  EXPECT_LE(plan.device_peak, machine.device_budget);
  EXPECT_LE(s.host_peak, plan.host_peak);
  EXPECT_LE(plan.host_peak, machine.host_budget);
  EXPECT_EQ(s.bytes_out, plan.bytes_out);
  EXPECT_EQ(s.bytes_in, plan.bytes_in);
  EXPECT_EQ(s.safepoints, plan.safepoints);
  const double slack = 100 + 1e-4 * s.step_ns;
  if (s.steady) {
    EXPECT_NEAR(s.step_ns, static_cast<double>(plan.step_time), slack);
  }
}

// A budget for which there is a plan.
Bytes HalfOrWhatIsNeeded(const Step& step, Machine machine) {
  Plan plan;
  machine.device_budget = LivePeak(step) / 2;
  if (MakePlan(step, machine, PlanGoal(), &plan) == PlanOutcome::kPlanned)
    return LivePeak(step) / 2;
  return plan.smallest_device_budget;
}

bool SamePlan(const Plan& a, const Plan& b) {
  if (a.moves.size() != b.moves.size() || a.step_time != b.step_time) return false;
  for (size_t i = 0; i < a.moves.size(); ++i) {
    const core::Move &x = a.moves[i], &y = b.moves[i];
    if (x.buffer != y.buffer || x.offset != y.offset || x.bytes != y.bytes || x.after != y.after ||
        x.release != y.release || x.reserve != y.reserve || x.ready != y.ready ||
        x.clean != y.clean || x.keeps_copy != y.keeps_copy) {
      return false;
    }
  }
  return true;
}

class PlannerProperty : public testing::TestWithParam<unsigned> {};

TEST_P(PlannerProperty, APlanIsExecutedAsPromised) {
  std::mt19937_64 random(GetParam());
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Step step = AnyStep(random, 60, 40);
    Machine machine = AnyMachine(random);
    machine.device_budget = LivePeak(step) * (20 + Below(random, 90)) / 100;
    if (Below(random, 2) == 0) machine.host_budget = LivePeak(step) * Below(random, 60) / 100;
    Plan plan, again;
    const PlanOutcome outcome = MakePlan(step, machine, PlanGoal(), &plan);
    ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &again), outcome);
    if (outcome == PlanOutcome::kCannot) {
      EXPECT_GT(plan.smallest_device_budget, machine.device_budget);
      machine.device_budget = plan.smallest_device_budget;
      ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &plan), PlanOutcome::kPlanned) << plan.reason;
      ExpectPromisesHold(step, machine, plan);
      continue;
    }
    ASSERT_EQ(outcome, PlanOutcome::kPlanned) << plan.reason;
    ExpectPromisesHold(step, machine, plan);
    EXPECT_TRUE(SamePlan(plan, again)) << "the same input gave two plans";
    const core::TimeBound bound = core::FindTimeBound(step, machine);
    ASSERT_EQ(bound.outcome, core::BoundOutcome::kBound);
    EXPECT_GE(plan.step_time + 1, bound.time);
    const core::TrafficBound traffic = core::FindTrafficBound(step, machine);
    EXPECT_GE(plan.bytes_out, traffic.bytes_out);
    EXPECT_GE(plan.bytes_in, traffic.bytes_in);
  }
}

// Without a host budget, a plan exists down to the largest working set and not below.
TEST_P(PlannerProperty, APlanExistsDownToTheLargestWorkingSet) {
  std::mt19937_64 random(GetParam() + 1000);
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Step step = AnyStep(random, 40, 30);
    Machine machine = AnyMachine(random);
    const Bytes floor = WorkingSetFloor(step, machine);
    Plan plan;
    machine.device_budget = floor;
    ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &plan), PlanOutcome::kPlanned) << plan.reason;
    ExpectPromisesHold(step, machine, plan);
    if (floor == 0) continue;
    machine.device_budget = floor - 1;
    ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &plan), PlanOutcome::kCannot);
    EXPECT_EQ(plan.smallest_device_budget, floor);
  }
}

TEST_P(PlannerProperty, ASlowdownThatIsAllowedIsNotExceeded) {
  std::mt19937_64 random(GetParam() + 2000);
  for (int round = 0; round < 4; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Step step = AnyStep(random, 60, 40);
    const Machine machine = AnyMachine(random);
    Plan plan;
    PlanGoal goal;
    goal.mode = core::PlanMode::kWithinSlowdown;
    Bytes peak = core::kNoLimit;
    for (double slowdown : {0.0, 0.05, 0.5}) {
      goal.slowdown = slowdown;
      ASSERT_EQ(MakePlan(step, machine, goal, &plan), PlanOutcome::kPlanned) << plan.reason;
      ExpectPromisesHold(step, machine, plan);
      EXPECT_LE(
          static_cast<double>(plan.step_time),
          static_cast<double>(plan.ideal_time) * (1 + std::max(slowdown, core::kNotSlower)) + 1);
      EXPECT_LE(plan.device_peak, peak) << "more slowdown allowed, and a higher peak";
      peak = plan.device_peak;
    }
  }
}

TEST_P(PlannerProperty, AReplanAfterASmallChangeIsExecutedAsPromised) {
  std::mt19937_64 random(GetParam() + 3000);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    Step step = AnyStep(random, 60, 40);
    Machine machine = AnyMachine(random);
    machine.device_budget = HalfOrWhatIsNeeded(step, machine);
    Plan before, after;
    ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &before), PlanOutcome::kPlanned);
    for (core::StepOp& op : step.ops) op.duration = op.duration * (75 + Below(random, 51)) / 100;
    machine.out_rate_duplex = std::min(machine.out_rate /= 2, machine.out_rate_duplex);
    machine.in_rate_duplex = std::min(machine.in_rate /= 2, machine.in_rate_duplex);
    ASSERT_EQ(Replan(step, machine, before, &after), PlanOutcome::kPlanned) << after.reason;
    ExpectPromisesHold(step, machine, after);
  }
}

// The executed plan of a disturbed step is late, never wrong: peaks hold whatever the durations.
TEST_P(PlannerProperty, PeaksHoldWhateverTheTiming) {
  std::mt19937_64 random(GetParam() + 4000);
  for (int round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Step step = AnyStep(random, 60, 40);
    Machine machine = AnyMachine(random);
    machine.device_budget = HalfOrWhatIsNeeded(step, machine);
    Plan plan;
    ASSERT_EQ(MakePlan(step, machine, PlanGoal(), &plan), PlanOutcome::kPlanned) << plan.reason;
    SimulationOptions options;
    options.disturbance.duration_noise = 0.25;
    options.disturbance.seed = random();
    options.disturbance.late_rate_factor = 0.5;
    const Simulation s = Simulate(step, machine, plan, options);
    ASSERT_EQ(s.refusal, "");
    EXPECT_LE(s.device_peak, machine.device_budget);
  }
}

// Most bytes outlive the step and go round: both links must be kept busy all the time.
TEST(PlannerQuality, WhatGoesRoundComesCloseToItsBound) {
  const NamedStep net = AveragedUnetStep();
  Machine machine;
  SetRates(6e9, 6e9, &machine);
  machine.safepoint = 20'000;
  for (const int percent : {60, 50, 40}) {
    SCOPED_TRACE(std::to_string(percent) + " %");
    machine.device_budget = LivePeak(net.step) / 100 * static_cast<Bytes>(percent);
    Plan plan;
    ASSERT_EQ(MakePlan(net.step, machine, PlanGoal(), &plan), PlanOutcome::kPlanned) << plan.reason;
    const core::TimeBound bound =
        core::FindTimeBound(net.step, machine, {core::Granularity::kBoundary, /*prices=*/true});
    EXPECT_GE(static_cast<double>(bound.time), 0.92 * static_cast<double>(plan.step_time));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, PlannerProperty, testing::Range(1u, 6u));

}  // namespace
}  // namespace tidemark::steps
