// What MakePlan promises, on steps small enough to see through.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/planner.h"
#include "tests/core/chain_step.h"
#include "tests/step/simulator.h"
#include "tests/step/step_builder.h"

namespace tidemark::core {
namespace {

Machine Limited(Bytes device_budget, double rate = 25e9) {
  Machine machine;
  machine.device_budget = device_budget;
  steps::SetRates(rate, rate, &machine);
  return machine;
}

TEST(PlannerTest, MovesNothingWhenEverythingFits) {
  const Step step = ChainStep(8, 64 * kMiB, 1'000'000);
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(steps::LivePeak(step)), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.moves.size(), 0u);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, HidesAllCopiesWhenTheLinkIsFast) {
  const Step step = ChainStep(16, 64 * kMiB, 10'000'000);
  const Bytes budget = steps::LivePeak(step) / 2;
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(budget, 55e9), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_LE(plan.device_peak, budget);
  EXPECT_GT(plan.moves.size(), 0u);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, StallsRatherThanPassTheBudgetWhenTheLinkIsSlow) {
  const Step step = ChainStep(16, 64 * kMiB, 1'000'000);
  const Bytes budget = steps::LivePeak(step) / 3;
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(budget, 10e9), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_LE(plan.device_peak, budget);
  EXPECT_GT(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, GoesDownToTheLargestWorkingSetAndSaysSoBelow) {
  const Step step = ChainStep(8, 64 * kMiB, 1'000'000);
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(kMiB), {}, &plan), PlanOutcome::kCannot);
  const Bytes smallest = plan.smallest_device_budget;
  EXPECT_EQ(smallest, (64 + 64 + 16) * kMiB);  // two activations and a layer's weights
  EXPECT_EQ(MakePlan(step, Limited(smallest - 1), {}, &plan), PlanOutcome::kCannot);
  ASSERT_EQ(MakePlan(step, Limited(smallest), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.device_peak, smallest);
}

// A chain of 8 layers with three buffers beside it that no operation uses.
Step ChainWithIdleState(Bytes idle) {
  Step step = ChainStep(8, 64 * kMiB, 1'000'000);
  for (int i = 0; i < 3; ++i) {
    StepBuffer buffer;
    buffer.bytes = idle;
    buffer.persistent = true;
    EXPECT_TRUE(step.buffers.Append(buffer));
  }
  return step;
}

TEST(PlannerTest, ParksForGoodWhatNoOperationUses) {
  const Step step = ChainWithIdleState(300 * kMiB);
  const Bytes rest = steps::LivePeak(step) - 900 * kMiB;
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(rest), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.moves.size(), 0u) << "nothing else has to leave";
  EXPECT_EQ(plan.step_time, plan.ideal_time);
  EXPECT_EQ(plan.device_peak, rest);
  EXPECT_EQ(plan.host_peak, 900 * kMiB);
  EXPECT_EQ(steps::Simulate(step, Limited(rest), plan).refusal, "");
  for (const WindowDecision& decision : plan.decisions) {
    const bool is_idle = decision.buffer >= step.buffers.size() - 3;
    EXPECT_EQ(decision.verdict == WindowVerdict::kTaken, is_idle);
  }
  // No more than is asked for, to the chunk.
  ASSERT_EQ(MakePlan(step, Limited(rest + 899 * kMiB), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.host_peak, 2 * kMiB);
}

TEST(PlannerTest, ParksAsMuchAsTheHostHolds) {
  const Step step = ChainWithIdleState(300 * kMiB);
  const Bytes peak = steps::LivePeak(step);
  Machine machine = Limited(peak - 700 * kMiB);
  machine.host_budget = 701 * kMiB;
  Plan plan;
  ASSERT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kPlanned) << plan.reason;
  EXPECT_EQ(plan.host_peak, 700 * kMiB);
  machine.host_budget = 600 * kMiB;
  ASSERT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kCannot);
  EXPECT_EQ(plan.smallest_device_budget, peak - 600 * kMiB);
  EXPECT_NE(std::strstr(plan.reason, "host budget"), nullptr) << plan.reason;
}

TEST(PlannerTest, LowersThePeakOfAStepThatHoldsNothing) {
  Step step;
  ASSERT_TRUE(step.ops.Append({1'000'000, 0, 0}));
  PlanGoal goal;
  goal.mode = PlanMode::kWithinSlowdown;
  Plan plan;
  ASSERT_EQ(MakePlan(step, Limited(kNoLimit), goal, &plan), PlanOutcome::kPlanned) << plan.reason;
  EXPECT_EQ(plan.device_peak, 0u);
}

TEST(PlannerTest, LowersThePeakAsFarAsTheSlowdownAllows) {
  const Step step = ChainStep(16, 64 * kMiB, 4'000'000);
  Bytes peak = steps::LivePeak(step);
  for (const double slowdown : {0.0, 0.1, 1.0}) {
    Plan plan;
    ASSERT_EQ(MakePlan(step, Limited(kNoLimit, 10e9), {PlanMode::kWithinSlowdown, slowdown}, &plan),
              PlanOutcome::kPlanned);
    EXPECT_LE(static_cast<double>(plan.step_time),
              static_cast<double>(plan.ideal_time) * (1 + std::max(slowdown, kNotSlower)));
    EXPECT_LT(plan.device_peak, peak) << slowdown;
    peak = plan.device_peak;
  }
}

// A safepoint always costs something, and yet what can leave while the links are free does leave.
TEST(PlannerTest, LowersThePeakWithoutSlowdownAlthoughSafepointsCost) {
  const Step step = ChainStep(16, 64 * kMiB, 10'000'000);
  Machine machine = Limited(kNoLimit);
  machine.safepoint = 20'000;
  Plan plan;
  ASSERT_EQ(MakePlan(step, machine, {PlanMode::kWithinSlowdown, 0}, &plan), PlanOutcome::kPlanned);
  EXPECT_LT(plan.device_peak, steps::LivePeak(step) * 3 / 4);
  EXPECT_GT(plan.safepoints, 0u);
  EXPECT_LE(static_cast<double>(plan.step_time),
            static_cast<double>(plan.ideal_time) * (1 + kNotSlower));
}

// Petabytes over a link of one byte per second take longer than a step's time can say.
TEST(PlannerTest, RefusesLinksSoSlowThatTheStepNeverEnds) {
  const Step step = ChainStep(8, Bytes{1} << 50, 1'000'000);
  Machine machine = Limited(steps::LivePeak(step) / 2, 1);
  machine.chunk_bytes = Bytes{1} << 46;
  Plan plan;
  EXPECT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kBadInput);
  EXPECT_STREQ(plan.reason, "the links are so slow that the step would take more than 2^62 ns");
  EXPECT_EQ(plan.moves.size(), 0u);
  steps::SetRates(1e9, 1e9, &machine);
  EXPECT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kPlanned);
  EXPECT_GT(plan.step_time, Nanoseconds{1} << 50);
}

TEST(PlannerTest, RefusesBadInputWithASentence) {
  Step step = ChainStep(4, 64 * kMiB, 1'000'000);
  Machine machine = Limited(kGiB);
  machine.out_rate = 0;
  Plan plan;
  EXPECT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kBadInput);
  EXPECT_GT(std::strlen(plan.reason), 20u);
  step.accesses[0].buffer = 1000;
  EXPECT_EQ(MakePlan(step, Limited(kGiB), {}, &plan), PlanOutcome::kBadInput);
  EXPECT_STREQ(plan.reason, "an operation uses a buffer that does not exist");
}

}  // namespace
}  // namespace tidemark::core
