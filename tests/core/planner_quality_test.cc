// How good plans are, on steps small enough for the exact search, and what more of anything
// changes.

#include <gtest/gtest.h>

#include "core/planner.h"
#include "tests/core/planner_steps.h"
#include "tests/step/exact_search.h"

namespace tidemark::core {
namespace {

Bytes LargestWorkingSet(const Step& step) {
  Plan plan;
  Machine machine;
  machine.device_budget = 0;
  machine.min_bytes = 0;
  EXPECT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kCannot);
  return plan.smallest_device_budget;
}

Machine TinyMachine(const Step& step, std::mt19937_64* random) {
  const Bytes floor = LargestWorkingSet(step), peak = LivePeakOf(step);
  Machine machine;
  machine.min_bytes = 0;
  const Bytes chunks = (peak - floor) / kChunkBytes;
  machine.device_budget = floor + kChunkBytes * (chunks == 0 ? 0 : (*random)() % chunks);
  machine.out_rate = machine.out_rate_duplex = 1e9 * static_cast<double>(5 + (*random)() % 40);
  machine.in_rate = machine.in_rate_duplex =
      machine.out_rate * (0.7 + 0.01 * static_cast<double>((*random)() % 60));
  if ((*random)() % 4 == 0) {
    machine.out_rate_duplex *= 0.7;
    machine.in_rate_duplex *= 0.7;
  }
  return machine;
}

TEST(PlannerQualityTest, IsWithinOnePercentOfTheExactOptimum) {
  int compared = 0, beyond = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::mt19937_64 random(seed * 7919 + 1);
    StepMaker maker;
    const auto ops = static_cast<uint32_t>(4 + random() % 6);
    MakeTinyStep(seed, ops, static_cast<uint32_t>(3 + random() % 7), &maker);
    const Machine machine = TinyMachine(maker.step(), &random);
    const auto exact = steps::ExactSearch(maker.step(), machine, steps::ExactGoal::kTime, 20'000);
    if (!exact.finished) continue;
    Plan plan;
    ASSERT_TRUE(exact.feasible) << "seed " << seed;
    ASSERT_EQ(MakePlan(maker.step(), machine, {}, &plan), PlanOutcome::kPlanned);
    const auto time = static_cast<double>(plan.step_time);
    EXPECT_GE(time, exact.value - 1) << "seed " << seed << ": faster than possible";
    EXPECT_LE(time, exact.value * 1.05 + 1) << "seed " << seed;
    if (time > exact.value * 1.01 + 1) ++beyond;
    ++compared;
  }
  EXPECT_GE(compared, 100);
  EXPECT_LE(beyond, compared / 100) << "of " << compared;
}

// A plan that exists is never given up for a slower one.
TEST(PlannerQualityTest, ReplanningWithMoreOfAnythingIsNeverSlower) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    StepMaker maker;
    MakeRandomStep(seed, 25, 20, &maker);
    Machine machine;
    machine.min_bytes = 0;
    machine.device_budget = (LargestWorkingSet(maker.step()) + LivePeakOf(maker.step())) / 2;
    Plan before;
    if (MakePlan(maker.step(), machine, {}, &before) != PlanOutcome::kPlanned) continue;
    for (int round = 0; round < 4; ++round) {
      switch (random() % 3) {
        case 0:
          machine.device_budget += machine.device_budget / 10;
          break;
        case 1:
          machine.out_rate = machine.out_rate_duplex = machine.out_rate * 1.2;
          break;
        default:
          machine.in_rate = machine.in_rate_duplex = machine.in_rate * 1.2;
      }
      Plan after;
      ASSERT_EQ(Replan(maker.step(), machine, before, &after), PlanOutcome::kPlanned);
      EXPECT_LE(after.step_time, before.step_time + 1) << "seed " << seed;
      std::swap(before, after);
    }
  }
}

// From nothing, the search may miss by a little what it finds with less; seldom, and not by much.
TEST(PlannerQualityTest, PlanningWithMoreOfAnythingIsHardlyEverSlower) {
  int compared = 0, slower = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    StepMaker maker;
    MakeRandomStep(seed, 25, 20, &maker);
    const Bytes floor = LargestWorkingSet(maker.step()), peak = LivePeakOf(maker.step());
    Nanoseconds last = 0;
    for (const Bytes share : {0, 2, 4, 6, 8}) {
      Machine machine;
      machine.min_bytes = 0;
      machine.device_budget = floor + (peak - floor) / 8 * share;
      Plan plan;
      ASSERT_EQ(MakePlan(maker.step(), machine, {}, &plan), PlanOutcome::kPlanned);
      if (share != 0) {
        EXPECT_LE(static_cast<double>(plan.step_time), static_cast<double>(last) * 1.05)
            << "seed " << seed;
        slower += plan.step_time > last + last / 1000 ? 1 : 0;
        ++compared;
      }
      last = plan.step_time;
    }
  }
  EXPECT_LE(slower, compared / 50) << "of " << compared;
}

}  // namespace
}  // namespace tidemark::core
