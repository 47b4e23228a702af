// The learned iteration against training loops whose next use is known.

#include "core/iteration.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/core/training_loop.h"

namespace tidemark::core {
namespace {

TEST(IterationTest, LearnsTheStepAndNotTheLayer) {
  auto loop = std::make_unique<TrainingLoop>(12);
  for (int step = 0; step < 8; ++step) loop->Step();
  EXPECT_EQ(loop->iteration.period(), static_cast<uint32_t>(loop->Length()));
}

TEST(IterationTest, KnowsWhenBuffersThatStayAreUsedNext) {
  auto loop = std::make_unique<TrainingLoop>(6);
  for (int step = 0; step < 8; ++step) loop->Step();
  // The step has just ended: layer 0 is first again.
  EXPECT_EQ(loop->Next(loop->weights[0]), 1u);
  EXPECT_EQ(loop->Next(loop->weights[1]), 3u);
  EXPECT_EQ(loop->Next(loop->weights[5]), 11u);
}

TEST(IterationTest, KnowsWhenABufferBornInThisStepIsUsedNextAndWhenItEnds) {
  auto loop = std::make_unique<TrainingLoop>(4);
  for (int step = 0; step < 8; ++step) loop->Step();
  std::vector<BufferName> young;
  for (int i = 0; i < 4; ++i) {
    young.push_back(loop->New(500));
    loop->Launch(1, {loop->weights[static_cast<size_t>(i)], young.back()});
    loop->Launch(2, {young.back()});
  }
  // Next: launch 3 on the last one, then the backward pass from the last to the first.
  EXPECT_EQ(loop->Next(young[3]), 1u);
  EXPECT_EQ(loop->Next(young[2]), 3u);
  EXPECT_EQ(loop->Next(young[0]), 5u);
  loop->Launch(3, {young[3]});
  loop->Launch(4, {loop->weights[3], young[3]});
  bool known = false;
  const NextUse next = loop->iteration.Next(young[3], &known);
  EXPECT_TRUE(known);
  EXPECT_TRUE(next.is_end);
}

TEST(IterationTest, ForgetsWhenTheSequenceChangesAndLearnsTheNewOne) {
  auto loop = std::make_unique<TrainingLoop>(5);
  for (int step = 0; step < 8; ++step) loop->Step();
  ASSERT_NE(loop->iteration.period(), 0u);
  loop->Launch(77, {});  // an evaluation
  EXPECT_EQ(loop->iteration.period(), 0u);
  EXPECT_EQ(loop->Next(loop->weights[0]), 0u);
  for (int step = 0; step < 12; ++step) {
    loop->Step();
    loop->Launch(78, {});
  }
  EXPECT_EQ(loop->iteration.period(), static_cast<uint32_t>(loop->Length() + 1));
  EXPECT_EQ(loop->Next(loop->weights[0]), 1u);
}

TEST(IterationTest, DescribesTheStepForThePlannerFromAPointWhereNothingTransientLives) {
  auto loop = std::make_unique<TrainingLoop>(6);
  for (int step = 0; step < 8; ++step) loop->Step();
  // Learned in the middle of a forward pass.
  for (size_t i = 0; i < 3; ++i) {
    const BufferName young = loop->New(500);
    loop->Launch(1, {loop->weights[i], young});
    loop->Launch(2, {young});
  }
  loop->iteration.Learn();
  Step step;
  Array<uint64_t> keys;
  LaunchNumber first = 0;
  ASSERT_TRUE(loop->iteration.Describe(1000, &step, &keys, &first));
  size_t at = 0;
  EXPECT_EQ(step.Validate(&at), nullptr) << at;
  EXPECT_EQ(step.ops.size(), static_cast<size_t>(loop->Length()));
  ASSERT_EQ(step.buffers.size(), 12u);
  int transient = 0, movable = 0;
  for (const StepBuffer& buffer : step.buffers) {
    transient += buffer.persistent ? 0 : 1;
    movable += buffer.movable ? 1 : 0;
    EXPECT_EQ(buffer.bytes, buffer.persistent ? 1000u : 500u);
  }
  EXPECT_EQ(transient, 6);
  EXPECT_EQ(movable, 12);
}

TEST(IterationTest, KnowsNothingOfAStrangerOrARandomSequence) {
  auto loop = std::make_unique<TrainingLoop>(5);
  for (int step = 0; step < 8; ++step) loop->Step();
  const BufferName stranger{12345, loop->iteration.Birth(), 77};
  EXPECT_EQ(loop->Next(stranger), 0u);
  uint64_t x = 1;
  for (int i = 0; i < 5000; ++i) {
    x = x * UINT64_C(6364136223846793005) + 1;
    loop->Launch(100 + (x >> 60), {});
  }
  EXPECT_EQ(loop->iteration.period(), 0u);
}

TEST(IterationTest, WithoutMemoryItLearnsNothingAndAcceptsEverything) {
  Iteration iteration;
  iteration.Begin(1);
  iteration.Touch({1, iteration.Birth(), 10});
  iteration.End();
  iteration.Learn();
  bool known = true;
  EXPECT_EQ(iteration.Next({1, 0, 10}, &known).launches, Iteration::kNever);
  EXPECT_FALSE(known);
}

}  // namespace
}  // namespace tidemark::core
