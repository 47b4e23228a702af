// What a plan says about itself: why each window was taken or refused, and how its moves share
// safepoints.

#include <gtest/gtest.h>

#include <set>

#include "core/planner.h"
#include "tests/core/chain_step.h"
#include "tests/step/simulator.h"

namespace tidemark::core {
namespace {

WindowVerdict VerdictOn(const Plan& plan, BufferIndex buffer, OpIndex last_use) {
  for (const WindowDecision& d : plan.decisions) {
    if (d.buffer == buffer && d.last_use == last_use) return d.verdict;
  }
  ADD_FAILURE() << "no decision on buffer " << buffer << " after operation " << last_use;
  return WindowVerdict::kNotNeeded;
}

// Buffers of 8 chunks that are written early and read at the end, around a peak in the middle.
class PlannerReasonsTest : public testing::Test {
 protected:
  PlannerReasonsTest() {
    const Bytes bytes = 8 * kChunkBytes;
    steps::StepBuilder builder;
    cold_ = builder.Transient(bytes);
    pinned_ = builder.Transient(bytes);
    small_ = builder.Transient(64 * kKiB);
    late_ = builder.Transient(bytes);
    work_ = builder.Transient(bytes);
    builder.step().buffers[pinned_].movable = false;
    builder.Op(kOp, {}, {cold_, pinned_, small_});
    for (OpIndex i = 1; i < 4; ++i) builder.Op(kOp, {}, {});
    builder.Op(kOp, {}, {work_});
    builder.Op(kOp, {work_}, {});
    builder.Op(kOp, {}, {});
    builder.Op(kOp, {}, {late_});
    builder.Op(kOp, {}, {});
    builder.Op(kOp, {cold_, pinned_, small_, late_}, {});
    step_ = builder.Take();
    machine_.device_budget = 24 * kChunkBytes + kMiB;
  }

  static constexpr Nanoseconds kOp = 2'000'000;
  Step step_;
  BufferIndex cold_, pinned_, small_, late_, work_;
  Machine machine_;
  Plan plan_;
};

TEST_F(PlannerReasonsTest, SaysWhyEachWindowWasTakenOrRefused) {
  machine_.device_budget = 17 * kChunkBytes;  // 16 in the middle, 24 at the end
  ASSERT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kCannot);
  machine_.device_budget = plan_.smallest_device_budget;
  ASSERT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, pinned_, 0), WindowVerdict::kImmovable);
  EXPECT_EQ(VerdictOn(plan_, small_, 0), WindowVerdict::kTooSmall);
  EXPECT_EQ(VerdictOn(plan_, late_, 7), WindowVerdict::kNotNeeded);
}

TEST_F(PlannerReasonsTest, TakesTheOneWindowThatHelps) {
  step_.buffers[work_].bytes = 16 * kChunkBytes;  // the peak: 32 chunks at operation 4
  ASSERT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, cold_, 0), WindowVerdict::kTaken);
  EXPECT_EQ(plan_.step_time, plan_.ideal_time);
  machine_.device_budget += 3 * kChunkBytes;
  ASSERT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, cold_, 0), WindowVerdict::kTakenInPart);
  EXPECT_EQ(plan_.bytes_out, 5 * kChunkBytes);
}

TEST_F(PlannerReasonsTest, SaysThatTheHostIsTheLimit) {
  step_.buffers[work_].bytes = 16 * kChunkBytes;
  machine_.host_budget = 4 * kChunkBytes;
  ASSERT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kCannot);
  EXPECT_STREQ(plan_.reason, "the host budget does not hold what has to leave the device");
  EXPECT_GE(plan_.smallest_device_budget, 28 * kChunkBytes);
  EXPECT_LE(plan_.smallest_device_budget, 29 * kChunkBytes);
  machine_.host_budget = 8 * kChunkBytes;
  EXPECT_EQ(MakePlan(step_, machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_LE(plan_.host_peak, machine_.host_budget);
}

TEST(PlannerSafepointsTest, MovesShareTheBoundariesThatRemap) {
  const Step step = ChainStep(24, 64 * kMiB, 10'000'000);
  Machine machine;
  machine.device_budget = steps::LivePeak(step) / 2;
  machine.safepoint = 100'000;
  Plan plan;
  ASSERT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kPlanned);
  std::set<OpIndex> boundaries;
  for (const Move& move : plan.moves) {
    boundaries.insert(move.release);
    boundaries.insert(move.ready);
  }
  EXPECT_EQ(plan.safepoints, boundaries.size());
  EXPECT_LT(plan.safepoints, plan.moves.size());
  EXPECT_LE(plan.device_peak, machine.device_budget);
}

TEST(PlannerCleanTest, AReadOnlyBufferIsCopiedOutOnceForAllIterations) {
  steps::StepBuilder builder;
  const BufferIndex frozen = builder.Persistent(8 * kChunkBytes);
  const BufferIndex work = builder.Transient(8 * kChunkBytes);
  builder.Op(2'000'000, {frozen}, {});
  for (OpIndex i = 1; i < 4; ++i) builder.Op(2'000'000, {}, {});
  builder.Op(2'000'000, {}, {work});
  builder.Op(2'000'000, {work}, {});
  for (OpIndex i = 6; i < 10; ++i) builder.Op(2'000'000, {}, {});
  const Step step = builder.Take();
  Machine machine;
  machine.device_budget = 8 * kChunkBytes;
  Plan plan;
  ASSERT_EQ(MakePlan(step, machine, {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.bytes_out, 0u);
  EXPECT_EQ(plan.bytes_in, 8 * kChunkBytes);
  EXPECT_EQ(plan.host_peak, 8 * kChunkBytes);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

}  // namespace
}  // namespace tidemark::core
