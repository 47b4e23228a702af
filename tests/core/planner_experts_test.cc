// Large steps nearly all of whose bytes outlive them and go round.

#include <gtest/gtest.h>

#include "core/bounds.h"
#include "core/planner.h"
#include "tests/step/expert_step.h"
#include "tests/step/simulator.h"

namespace tidemark::core {
namespace {

TEST(PlannerExpertsTest, ManyExpertsTakeLittleMoreThanTheBound) {
  const Step step = steps::ExpertStep(/*layers=*/12, /*experts=*/16);
  Machine machine;
  machine.safepoint = 20000;
  machine.device_budget = steps::LivePeak(step) / 100 * 30;
  Plan plan;
  ASSERT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kPlanned);
  const TimeBound bound = FindTimeBound(step, machine);
  ASSERT_EQ(bound.outcome, BoundOutcome::kBound);
  EXPECT_GE(static_cast<double>(bound.time), 0.93 * static_cast<double>(plan.step_time));
}

}  // namespace
}  // namespace tidemark::core
