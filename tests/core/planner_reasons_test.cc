// What a plan says about itself: why each window was taken or refused, and how its moves share
// safepoints.

#include <gtest/gtest.h>

#include <set>

#include "core/planner.h"
#include "tests/core/planner_steps.h"

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
    cold_ = maker_.Transient(bytes, 0, 9);
    pinned_ = maker_.Transient(bytes, 0, 9);
    small_ = maker_.Transient(64 * kKiB, 0, 9);
    late_ = maker_.Transient(bytes, 7, 9);
    work_ = maker_.Transient(bytes, 4, 5);
    maker_.step().buffers[pinned_].movable = false;
    maker_.Op(kOp, {Writes(cold_), Writes(pinned_), Writes(small_)});
    for (OpIndex i = 1; i < 4; ++i) maker_.Op(kOp, {});
    maker_.Op(kOp, {Writes(work_)});
    maker_.Op(kOp, {Reads(work_)});
    maker_.Op(kOp, {});
    maker_.Op(kOp, {Writes(late_)});
    maker_.Op(kOp, {});
    maker_.Op(kOp, {Reads(cold_), Reads(pinned_), Reads(small_), Reads(late_)});
    machine_.device_budget = 24 * kChunkBytes + kMiB;
  }

  static constexpr Nanoseconds kOp = 2'000'000;
  StepMaker maker_;
  BufferIndex cold_, pinned_, small_, late_, work_;
  Machine machine_;
  Plan plan_;
};

TEST_F(PlannerReasonsTest, SaysWhyEachWindowWasTakenOrRefused) {
  machine_.device_budget = 17 * kChunkBytes;  // 16 in the middle, 24 at the end
  ASSERT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kCannot);
  machine_.device_budget = plan_.smallest_device_budget;
  ASSERT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, pinned_, 0), WindowVerdict::kImmovable);
  EXPECT_EQ(VerdictOn(plan_, small_, 0), WindowVerdict::kTooSmall);
  EXPECT_EQ(VerdictOn(plan_, late_, 7), WindowVerdict::kNotNeeded);
}

TEST_F(PlannerReasonsTest, TakesTheOneWindowThatHelps) {
  maker_.step().buffers[work_].bytes = 16 * kChunkBytes;  // the peak: 32 chunks at operation 4
  ASSERT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, cold_, 0), WindowVerdict::kTaken);
  EXPECT_EQ(plan_.step_time, plan_.ideal_time);
  machine_.device_budget += 3 * kChunkBytes;
  ASSERT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_EQ(VerdictOn(plan_, cold_, 0), WindowVerdict::kTakenInPart);
  EXPECT_EQ(plan_.bytes_out, 5 * kChunkBytes);
}

TEST_F(PlannerReasonsTest, SaysThatTheHostIsTheLimit) {
  maker_.step().buffers[work_].bytes = 16 * kChunkBytes;
  machine_.host_budget = 4 * kChunkBytes;
  ASSERT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kCannot);
  EXPECT_STREQ(plan_.reason, "the host budget does not hold what has to leave the device");
  EXPECT_GE(plan_.smallest_device_budget, 28 * kChunkBytes);
  EXPECT_LE(plan_.smallest_device_budget, 29 * kChunkBytes);
  machine_.host_budget = 8 * kChunkBytes;
  EXPECT_EQ(MakePlan(maker_.step(), machine_, {}, &plan_), PlanOutcome::kPlanned);
  EXPECT_LE(plan_.host_peak, machine_.host_budget);
}

TEST(PlannerSafepointsTest, MovesShareTheBoundariesThatRemap) {
  StepMaker maker;
  MakeChain(24, 64 * kMiB, 10'000'000, &maker);
  Machine machine;
  machine.device_budget = LivePeakOf(maker.step()) / 2;
  machine.safepoint = 100'000;
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), machine, {}, &plan), PlanOutcome::kPlanned);
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
  StepMaker maker;
  const BufferIndex frozen = maker.Persistent(8 * kChunkBytes);
  const BufferIndex work = maker.Transient(8 * kChunkBytes, 4, 5);
  for (OpIndex i = 0; i < 10; ++i) {
    std::vector<StepAccess> accesses;
    if (i == 0) accesses.push_back(Reads(frozen));
    if (i == 4) accesses.push_back(Writes(work));
    if (i == 5) accesses.push_back(Reads(work));
    maker.Op(2'000'000, accesses);
  }
  Machine machine;
  machine.device_budget = 8 * kChunkBytes;
  Plan plan;
  ASSERT_EQ(MakePlan(maker.step(), machine, {}, &plan), PlanOutcome::kPlanned);
  EXPECT_EQ(plan.bytes_out, 0u);
  EXPECT_EQ(plan.bytes_in, 8 * kChunkBytes);
  EXPECT_EQ(plan.host_peak, 8 * kChunkBytes);
  EXPECT_EQ(plan.step_time, plan.ideal_time);
}

}  // namespace
}  // namespace tidemark::core
