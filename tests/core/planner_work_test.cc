// Planning time is bounded by a count of what is done, since the planner has no clock.

#include <gtest/gtest.h>

#include <algorithm>

#include "core/planner/search.h"
#include "tests/step/any_step.h"
#include "tests/step/large_step.h"
#include "tests/step/simulator.h"
#include "tests/step/step_builder.h"

namespace tidemark::core::planner {
namespace {

// One trial is finished when the limit is reached.
constexpr uint64_t kAllowed = Search::kMostWork / 10 * 11;

// As in a recurrent network: all operations use the same few large buffers, and keep one each.
Step SharedWeights(uint32_t ops) {
  steps::StepBuilder s;
  steps::StepBuilder::Buffers weights, kept;
  for (int k = 0; k < 4; ++k) weights.push_back(s.Persistent(256 * kMiB));
  for (uint32_t i = 0; i < ops; ++i) {
    kept.push_back(s.Transient(8 * kMiB));
    s.Op(200000, weights, {kept.back()});
  }
  for (uint32_t i = ops; i-- > 0;) {
    steps::StepBuilder::Buffers reads = weights;
    reads.push_back(kept[i]);
    s.Op(400000, reads, {});
  }
  return s.Take();
}

void ExpectBounded(const Step& step, Bytes device_percent, Bytes host_percent) {
  Machine machine;
  const Bytes peak = steps::LivePeak(step), floor = steps::WorkingSetFloor(step, machine);
  machine.device_budget = std::max(floor, peak / 100 * device_percent);
  if (host_percent != 0) machine.host_budget = peak / 100 * host_percent;
  machine.safepoint = 20000;
  Search search;
  ASSERT_TRUE(search.Init(step, machine));
  ASSERT_NE(search.TryRecipes(), Found::kNoMemory);
  ASSERT_NE(search.Improve(), Found::kNoMemory);
  ASSERT_NE(search.Polish(), Found::kNoMemory);
  EXPECT_LE(search.spent(), kAllowed) << device_percent << " " << host_percent;
  // All drafts by prices together: in many stretches and in few.
  ASSERT_NE(search.TryPrices(), Found::kNoMemory);
  EXPECT_LE(search.spent_on_prices(), kPriceWork) << device_percent << " " << host_percent;
  EXPECT_LE(search.spent(), kAllowed) << device_percent << " " << host_percent;
}

TEST(PlannerWorkTest, NoShapeOfStepTakesMoreThanIsAllowed) {
  const Step random = steps::LargeStep(1, 2500, 4500);
  const Step shared = SharedWeights(600);
  for (const Step* step : {&random, &shared}) {
    for (const Bytes device : {0, 30, 60}) ExpectBounded(*step, device, 0);
    ExpectBounded(*step, 75, 30);
    ExpectBounded(*step, 30, 20);
  }
}

// However long Polish finds something.
TEST(PlannerWorkTest, SmallStepsTakeAQuarterMoreAtMost) {
  int polished = 0;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    const Step step = steps::AnyStep(random, 60, 40);
    Machine machine = steps::AnyMachine(random);
    machine.device_budget = (steps::WorkingSetFloor(step, machine) + steps::LivePeak(step)) / 2;
    Search search;
    ASSERT_TRUE(search.Init(step, machine));
    ASSERT_NE(search.TryRecipes(), Found::kNoMemory);
    if (!search.IsSmall()) continue;
    const uint64_t before = search.spent();
    ASSERT_NE(search.Polish(), Found::kNoMemory);
    polished += search.spent() > before ? 1 : 0;
    EXPECT_LE(search.spent(), Search::kMostWorkOfSmall / 10 * 11) << seed;
  }
  EXPECT_GE(polished, 3);
}

// In few stretches, each would be hundreds of operations long.
TEST(PlannerWorkTest, LongStepsSpendNothingOnDraftsByPrices) {
  const Step step = steps::LargeStep(1, 2500, 4500);
  const Bytes peak = steps::LivePeak(step);
  Machine machine;
  machine.device_budget = peak / 100 * 75;
  machine.host_budget = peak / 100 * 30;
  machine.safepoint = 20000;
  Search search;
  ASSERT_TRUE(search.Init(step, machine));
  ASSERT_EQ(search.TryRecipes(), Found::kPlan);
  ASSERT_NE(search.TryPrices(), Found::kNoMemory);
  EXPECT_EQ(search.spent_on_prices(), 0);
}

}  // namespace
}  // namespace tidemark::core::planner
