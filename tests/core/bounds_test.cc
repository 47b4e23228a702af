// The bounds on steps small enough for paper; against the exact search in
// tests/step/bounds_oracle_test.cc.

#include "core/bounds.h"

#include <gtest/gtest.h>

#include "tests/step/step_builder.h"

namespace tidemark::core {
namespace {

using steps::StepBuilder;

Machine ByteMachine(Bytes device_budget) { return steps::BytePerNanosecond(device_budget, 1); }

// X is written, idle while Y is used, and read again; there is room for one of the two.
StepBuilder OneOfTwo() {
  StepBuilder b;
  const BufferIndex x = b.Transient(10);
  const BufferIndex y = b.Transient(10);
  b.Op(5, {}, {x});
  b.Op(5, {}, {y});
  b.Op(5, {x}, {});
  return b;
}

TEST(TimeBound, IsTheIdealTimeWhenEverythingFits) {
  const StepBuilder b = OneOfTwo();
  const TimeBound bound = FindTimeBound(b.step(), ByteMachine(20));
  ASSERT_EQ(bound.outcome, BoundOutcome::kBound) << bound.reason;
  EXPECT_EQ(bound.ideal_time, 15);
  EXPECT_EQ(bound.time, 15);
}

TEST(TimeBound, CountsTheWayOutAndTheWayInOfWhatNothingHides) {
  const StepBuilder b = OneOfTwo();
  const TimeBound bound = FindTimeBound(b.step(), ByteMachine(10));
  ASSERT_EQ(bound.outcome, BoundOutcome::kBound) << bound.reason;
  EXPECT_EQ(bound.time, 15 + 10 + 10);
  const TrafficBound traffic = FindTrafficBound(b.step(), ByteMachine(10));
  EXPECT_EQ(traffic.bytes_out, 10u);
  EXPECT_EQ(traffic.bytes_in, 10u);
}

TEST(TimeBound, CountsOnlyThePartThatMustLeave) {
  const StepBuilder b = OneOfTwo();
  EXPECT_EQ(FindTimeBound(b.step(), ByteMachine(16)).time, 15 + 4 + 4);
}

TEST(TimeBound, AddsASafepointOnEachSideOfAHiddenWindow) {
  StepBuilder b;
  const BufferIndex x = b.Transient(10);
  const BufferIndex y = b.Transient(10);
  b.Op(5, {}, {x});
  b.Op(50, {}, {});
  b.Op(5, {}, {y});
  b.Op(50, {}, {});
  b.Op(5, {x}, {});
  Machine machine = ByteMachine(10);
  machine.safepoint = 3;
  EXPECT_EQ(FindTimeBound(b.step(), machine).time, 115 + 3 + 3);
}

TEST(TimeBound, LetsBothDirectionsShareAWindow) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(10);
  const BufferIndex y = b.Persistent(10);
  b.Op(0, {}, {x});
  b.Op(0, {}, {y});
  // At each boundary one leaves before the other can come: 10 ns out and 10 ns in, twice.
  EXPECT_GE(FindTimeBound(b.step(), ByteMachine(10)).time, 20);
  EXPECT_LE(FindTimeBound(b.step(), ByteMachine(10)).time, 40);
}

TEST(TimeBound, ChargesNoWayOutForAWeightThatIsOnlyRead) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(10);
  const BufferIndex y = b.Transient(10);
  b.Op(5, {x}, {});
  b.Op(5, {}, {y});
  const TrafficBound traffic = FindTrafficBound(b.step(), ByteMachine(10));
  EXPECT_EQ(traffic.bytes_out, 0u);
  EXPECT_EQ(traffic.bytes_in, 10u);
  EXPECT_EQ(FindTimeBound(b.step(), ByteMachine(10)).time, 10 + 10);
}

TEST(TimeBound, CountsTrafficAcrossTheIterationsEnd) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(10);
  const BufferIndex y = b.Transient(10);
  b.Op(5, {}, {y});
  b.Op(2, {x}, {x});
  EXPECT_EQ(FindTimeBound(b.step(), ByteMachine(10)).time, 7 + 10 + 10);
}

TEST(TimeBound, SlowsDownWhereBothDirectionsMustRunAtOnce) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(100);
  const BufferIndex y = b.Persistent(100);
  for (const BufferIndex one : {x, y}) {
    b.Op(1, {one}, {one});
    b.Op(100, {}, {});
  }
  Machine machine = ByteMachine(100);
  const Nanoseconds alone = FindTimeBound(b.step(), machine).time;
  machine.in_rate_duplex = machine.out_rate_duplex = 0.5e9;
  EXPECT_GT(FindTimeBound(b.step(), machine).time, alone);
}

TEST(TimeBound, NamesTheSmallestBudgetWhereNothingFits) {
  const StepBuilder b = OneOfTwo();
  const TimeBound bound = FindTimeBound(b.step(), ByteMachine(9));
  EXPECT_EQ(bound.outcome, BoundOutcome::kCannot);
  EXPECT_EQ(bound.smallest_device_budget, 10u);
}

TEST(TimeBound, RespectsBuffersThatMayNotMove) {
  StepBuilder b = OneOfTwo();
  b.step().buffers[0].movable = false;
  const TimeBound bound = FindTimeBound(b.step(), ByteMachine(19));
  EXPECT_EQ(bound.outcome, BoundOutcome::kCannot);
  EXPECT_EQ(bound.smallest_device_budget, 20u);
  b.step().buffers[0].movable = true;
  Machine machine = ByteMachine(19);
  machine.min_bytes = 11;
  EXPECT_EQ(FindTimeBound(b.step(), machine).outcome, BoundOutcome::kCannot);
}

TEST(TimeBound, SaysCannotWhereTheHostIsTooSmall) {
  const StepBuilder b = OneOfTwo();
  Machine machine = ByteMachine(10);
  machine.host_budget = 9;
  EXPECT_EQ(FindTimeBound(b.step(), machine).outcome, BoundOutcome::kCannot);
  machine.host_budget = 10;
  EXPECT_EQ(FindTimeBound(b.step(), machine).outcome, BoundOutcome::kBound);
}

// X and Y take turns on the device: at each boundary one leaves, before the other can return.
TEST(TimeBound, SaysCannotWhereTheHostIsTooSmallForTwoToChangePlaces) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(10);
  const BufferIndex y = b.Persistent(10);
  for (const BufferIndex one : {x, y}) b.Op(5, {one}, {one});
  b.Op(5, {x}, {x});
  b.Op(5, {}, {});
  Machine machine = ByteMachine(10);
  machine.host_budget = 19;
  EXPECT_EQ(FindTimeBound(b.step(), machine).outcome, BoundOutcome::kCannot);
  EXPECT_EQ(FindTimeBound(b.step(), machine, {Granularity::kAnyTime}).outcome,
            BoundOutcome::kBound);
  machine.host_budget = 20;
  EXPECT_EQ(FindTimeBound(b.step(), machine).outcome, BoundOutcome::kBound);
}

TEST(TimeBound, HoldsAtTheEndsOfTheRanges) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(Bytes{1} << 50);
  const BufferIndex y = b.Transient(Bytes{1} << 50);
  const BufferIndex nothing = b.Transient(0);
  b.Op(0, {x}, {x});
  b.Op(0, {nothing}, {y});
  Machine machine = ByteMachine(Bytes{1} << 50);
  steps::SetRates(1, 1, &machine);
  const TimeBound bound = FindTimeBound(b.step(), machine, {Granularity::kBoundary, true});
  ASSERT_EQ(bound.outcome, BoundOutcome::kBound) << bound.reason;
  EXPECT_GT(bound.time, Nanoseconds{1} << 60);
  machine.device_budget = kNoLimit;
  EXPECT_EQ(FindTimeBound(b.step(), machine, {Granularity::kBoundary, true}).time, 0);
}

TEST(TimeBound, RefusesBuffersThatAddUpToMoreThanItCanCount) {
  StepBuilder b;
  const BufferIndex x = b.Transient(Bytes{1} << 58);
  for (int i = 0; i < 10; ++i) {
    b.Op(1, {x}, {});
    b.Op(1, {}, {});
  }
  EXPECT_EQ(FindTimeBound(b.step(), ByteMachine(kNoLimit)).outcome, BoundOutcome::kBadInput);
}

TEST(TimeBound, OneOperationTakesItsTime) {
  StepBuilder b;
  const BufferIndex x = b.Persistent(10);
  b.Op(7, {x}, {x});
  EXPECT_EQ(FindTimeBound(b.step(), ByteMachine(10), {Granularity::kBoundary, true}).time, 7);
}

TEST(TimeBound, RefusesAMalformedStepWithASentence) {
  Step empty;
  EXPECT_EQ(FindTimeBound(empty, ByteMachine(9)).outcome, BoundOutcome::kBadInput);
  StepBuilder b = OneOfTwo();
  b.step().accesses[0].buffer = 7;
  const TimeBound bound = FindTimeBound(b.step(), ByteMachine(10));
  EXPECT_EQ(bound.outcome, BoundOutcome::kBadInput);
  EXPECT_STRNE(bound.reason, "");
  EXPECT_EQ(FindTrafficBound(b.step(), ByteMachine(10)).outcome, BoundOutcome::kBadInput);
}

}  // namespace
}  // namespace tidemark::core
