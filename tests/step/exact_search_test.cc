// The oracle on steps whose fastest plan is known from paper.

#include "tests/step/exact_search.h"

#include <gtest/gtest.h>

#include "tests/step/random_step.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {
namespace {

core::Machine ByteMachine(core::Bytes device_budget) {
  return BytePerNanosecond(device_budget, 10);
}

double Fastest(const core::Step& step, const core::Machine& machine) {
  const ExactAnswer answer = ExactSearch(step, machine, ExactGoal::kTime);
  EXPECT_TRUE(answer.finished);
  EXPECT_TRUE(answer.feasible);
  return answer.value;
}

// X is written, idle while Y is used, and read again.
core::Step XThenYThenX() {
  StepBuilder b;
  const core::BufferIndex x = b.Transient(10);
  const core::BufferIndex y = b.Transient(10);
  b.Op(5, {}, {x});
  b.Op(5, {}, {y});
  b.Op(5, {x}, {});
  return b.Take();
}

TEST(ExactSearch, MovesNothingWhereEverythingFits) {
  EXPECT_DOUBLE_EQ(Fastest(XThenYThenX(), ByteMachine(20)), 15);
}

TEST(ExactSearch, WaitsForBothWaysWhereNothingHidesThem) {
  EXPECT_DOUBLE_EQ(Fastest(XThenYThenX(), ByteMachine(10)), 15 + 10 + 10);
}

TEST(ExactSearch, MovesOnlyTheChunksThatMustLeave) {
  core::Machine machine = ByteMachine(14);
  machine.chunk_bytes = 3;  // 6 of 10 bytes must leave: two chunks
  EXPECT_DOUBLE_EQ(Fastest(XThenYThenX(), machine), 15 + 6 + 6);
}

TEST(ExactSearch, HidesTheWayOutBehindTheReadsThatFollow) {
  StepBuilder b;
  const core::BufferIndex x = b.Transient(10);
  const core::BufferIndex y = b.Transient(10);
  b.Op(5, {}, {x});
  b.Op(8, {x}, {});
  b.Op(5, {}, {y});
  b.Op(8, {}, {});
  b.Op(5, {x}, {});
  EXPECT_DOUBLE_EQ(Fastest(b.step(), ByteMachine(10)), 31 + 2 + 2);
}

// The copy in starts behind the safepoint of the boundary that gives it its memory.
TEST(ExactSearch, PaysOneSafepointOnEachSideOfAWindow) {
  core::Machine machine = ByteMachine(10);
  machine.safepoint = 3;
  EXPECT_DOUBLE_EQ(Fastest(XThenYThenX(), machine), 15 + (10 + 3) + (3 + 10));
}

TEST(ExactSearch, DropsAWeightThatIsOnlyRead) {
  StepBuilder b;
  const core::BufferIndex x = b.Persistent(10);
  const core::BufferIndex y = b.Transient(10);
  b.Op(5, {x}, {});
  b.Op(5, {}, {y});
  EXPECT_DOUBLE_EQ(Fastest(b.step(), ByteMachine(10)), 10 + 10);
  EXPECT_DOUBLE_EQ(ExactSearch(b.step(), ByteMachine(10), ExactGoal::kBytesOut).value, 0);
  EXPECT_DOUBLE_EQ(ExactSearch(b.step(), ByteMachine(10), ExactGoal::kBytesIn).value, 10);
}

TEST(ExactSearch, CopiesOutOnceForTwoGapsWithoutAWriteBetween) {
  StepBuilder b;
  const core::BufferIndex x = b.Transient(10);
  const core::BufferIndex y = b.Transient(10);
  const core::BufferIndex z = b.Transient(10);
  b.Op(0, {}, {x});
  b.Op(0, {}, {y});
  b.Op(0, {x}, {});
  b.Op(0, {}, {z});
  b.Op(0, {x}, {});
  EXPECT_DOUBLE_EQ(Fastest(b.step(), ByteMachine(10)), 10 + 10 + 10);
  EXPECT_DOUBLE_EQ(ExactSearch(b.step(), ByteMachine(10), ExactGoal::kBytesOut).value, 10);
  b.step().accesses[2].write = true;
  EXPECT_DOUBLE_EQ(Fastest(b.step(), ByteMachine(10)), 40);
}

TEST(ExactSearch, SlowsBothLinksWhereTheyRunAtOnce) {
  StepBuilder b;
  const core::BufferIndex x = b.Transient(10);
  const core::BufferIndex y = b.Transient(10);
  const core::BufferIndex z = b.Transient(20);
  b.Op(0, {}, {x});
  b.Op(0, {}, {z});
  b.Op(0, {}, {y});  // the copy in of X and the copy out of Y may run here
  b.Op(12, {}, {});
  b.Op(0, {x}, {});
  const core::BufferIndex w = b.Transient(20);
  b.Op(0, {}, {w});
  b.Op(0, {y}, {});
  core::Machine machine = ByteMachine(20);
  EXPECT_DOUBLE_EQ(Fastest(b.step(), machine), 10 + 12 + 10);
  machine.in_rate_duplex = machine.out_rate_duplex = 0.5e9;  // 20 of copies do not fit into 12
  EXPECT_DOUBLE_EQ(Fastest(b.step(), machine), 10 + 20 + 10);
}

TEST(ExactSearch, RespectsTheHostBudget) {
  core::Machine machine = ByteMachine(10);
  machine.host_budget = 9;
  EXPECT_FALSE(ExactSearch(XThenYThenX(), machine, ExactGoal::kTime).feasible);
  machine.host_budget = 10;
  EXPECT_DOUBLE_EQ(Fastest(XThenYThenX(), machine), 35);
}

TEST(ExactSearch, SaysWhenItGaveUp) {
  const RandomStep random(3, {8, 8, 0.5, 3});
  EXPECT_FALSE(ExactSearch(random.step, random.machine, ExactGoal::kTime, 5).finished);
}

}  // namespace
}  // namespace tidemark::steps
