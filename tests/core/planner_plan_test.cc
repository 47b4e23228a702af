// What MakePlan promises, on steps small enough to see through.

#include <gtest/gtest.h>

#include <cstring>

#include "core/planner.h"
#include "tests/core/planner_steps.h"

namespace tidemark::core {
namespace {

Machine Limited(Bytes device_budget, double rate = 25e9) {
  Machine machine;
  machine.device_budget = device_budget;
  machine.out_rate = machine.in_rate = machine.out_rate_duplex = machine.in_rate_duplex = rate;
  return machine;
}

TEST(PlannerTest, MovesNothingWhenEverythingFits) {
  StepMaker maker;
  MakeChain(8, 64 * kMiB, 1'000'000, &maker);
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), Limited(LivePeakOf(maker.step())), {}, &plan),
            PlanOutcome::kPlanned);
  EXPECT_EQ(plan.moves.size(), 0u);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, HidesAllCopiesWhenTheLinkIsFast) {
  StepMaker maker;
  MakeChain(16, 64 * kMiB, 10'000'000, &maker);
  const Bytes budget = LivePeakOf(maker.step()) / 2;
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), Limited(budget, 55e9), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_LE(plan.device_peak, budget);
  EXPECT_GT(plan.moves.size(), 0u);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, StallsRatherThanPassTheBudgetWhenTheLinkIsSlow) {
  StepMaker maker;
  MakeChain(16, 64 * kMiB, 1'000'000, &maker);
  const Bytes budget = LivePeakOf(maker.step()) / 3;
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), Limited(budget, 10e9), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_LE(plan.device_peak, budget);
  EXPECT_GT(plan.step_time, plan.ideal_time);
}

TEST(PlannerTest, GoesDownToTheLargestWorkingSetAndSaysSoBelow) {
  StepMaker maker;
  MakeChain(8, 64 * kMiB, 1'000'000, &maker);
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), Limited(kMiB), {}, &plan), PlanOutcome::kCannot);
  const Bytes smallest = plan.smallest_device_budget;
  EXPECT_EQ(smallest, (64 + 64 + 16) * kMiB);  // two activations and a layer's weights
  EXPECT_EQ(MakePlan(maker.step(), Limited(smallest - 1), {}, &plan), PlanOutcome::kCannot);
  ASSERT_EQ(MakePlan(maker.step(), Limited(smallest), {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.device_peak, smallest);
}

TEST(PlannerTest, LowersThePeakAsFarAsTheSlowdownAllows) {
  StepMaker maker;
  MakeChain(16, 64 * kMiB, 4'000'000, &maker);
  Bytes peak = LivePeakOf(maker.step());
  for (const double slowdown : {0.0, 0.1, 1.0}) {
    Plan plan;
    ASSERT_EQ(MakePlan(maker.step(), Limited(kNoLimit, 10e9), {PlanMode::kWithinSlowdown, slowdown},
                       &plan),
              PlanOutcome::kPlanned);
    EXPECT_LE(static_cast<double>(plan.step_time),
              static_cast<double>(plan.ideal_time) * (1 + slowdown));
    EXPECT_LT(plan.device_peak, peak) << slowdown;
    peak = plan.device_peak;
  }
}

TEST(PlannerTest, RefusesBadInputWithASentence) {
  StepMaker maker;
  MakeChain(4, 64 * kMiB, 1'000'000, &maker);
  Machine machine = Limited(kGiB);
  machine.out_rate = 0;
  Plan plan;
  EXPECT_EQ(MakePlan(maker.step(), machine, {}, &plan), PlanOutcome::kBadInput);
  EXPECT_GT(std::strlen(plan.reason), 20u);
  maker.step().accesses[0].buffer = 1000;
  EXPECT_EQ(MakePlan(maker.step(), Limited(kGiB), {}, &plan), PlanOutcome::kBadInput);
  EXPECT_STREQ(plan.reason, "an operation uses a buffer that does not exist");
}

}  // namespace
}  // namespace tidemark::core
