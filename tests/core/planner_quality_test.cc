// How good plans are, on steps small enough for the exact search, and what a plan that exists is
// worth when there is more of anything.

#include <gtest/gtest.h>

#include "core/planner.h"
#include "tests/step/any_step.h"
#include "tests/step/exact_search.h"
#include "tests/step/random_step.h"
#include "tests/step/simulator.h"

namespace tidemark::core {
namespace {

// On all but a few: with copies of single bytes' times, of some tens of nanoseconds a step, a tie
// broken the wrong way shows as some percent.
TEST(PlannerQualityTest, IsWithinOnePercentOfTheExactOptimumOnNearlyAllSteps) {
  int compared = 0, beyond = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const steps::RandomStepShape shape = {.ops = static_cast<uint32_t>(4 + seed % 6),
                                          .buffers = static_cast<uint32_t>(3 + seed / 6 % 5)};
    const steps::RandomStep random(seed, shape);
    Machine machine = random.machine;
    if (seed % 4 == 0) {
      machine.out_rate_duplex *= 0.7;
      machine.in_rate_duplex *= 0.7;
    }
    const auto exact = steps::ExactSearch(random.step, machine, steps::ExactGoal::kTime, 5'000);
    if (!exact.finished) continue;
    Plan plan;
    ASSERT_TRUE(exact.feasible) << "seed " << seed;
    ASSERT_EQ(MakePlan(random.step, machine, {}, &plan), PlanOutcome::kPlanned);
    const auto time = static_cast<double>(plan.step_time);
    EXPECT_GE(time, exact.value - 1) << "seed " << seed << ": faster than possible";
    EXPECT_LE(time, exact.value * 1.1 + 1) << "seed " << seed;
    if (time > exact.value * 1.01 + 1) ++beyond;
    ++compared;
  }
  EXPECT_GE(compared, 150);
  EXPECT_LE(beyond, compared * 3 / 100) << "of " << compared;
}

// A plan that exists is never given up for a slower one.
TEST(PlannerQualityTest, ReplanningWithMoreOfAnythingIsNeverSlower) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const Step step = steps::AnyStep(random, 25, 20);
    Machine machine;
    machine.min_bytes = 0;
    machine.device_budget = (steps::WorkingSetFloor(step, machine) + steps::LivePeak(step)) / 2;
    Plan before;
    if (MakePlan(step, machine, {}, &before) != PlanOutcome::kPlanned) continue;
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
      ASSERT_EQ(Replan(step, machine, before, &after), PlanOutcome::kPlanned);
      EXPECT_LE(after.step_time, before.step_time + 1) << "seed " << seed;
      std::swap(before, after);
      ++compared;
    }
  }
  EXPECT_GE(compared, 120);
}

}  // namespace
}  // namespace tidemark::core
