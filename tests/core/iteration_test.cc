// The learned iteration against training loops whose next use is known.

#include "core/iteration.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

namespace tidemark::core {
namespace {

// A net of equal layers: weights that stay, activations born in the forward pass and freed in the
// backward pass, an optimizer over all weights.
class TrainingLoop {
 public:
  explicit TrainingLoop(int layers) : layers_(layers) {
    EXPECT_TRUE(iteration.Init());
    for (int i = 0; i < layers; ++i) {
      weights.push_back(New(1000));
      Launch(90, {weights.back()});  // filled once
    }
  }

  void Step() {
    activations.clear();
    for (int i = 0; i < layers_; ++i) {
      activations.push_back(New(500));
      Launch(1, {weights[Index(i)], activations.back()});
      Launch(2, {activations.back()});
    }
    Launch(3, {activations.back()});
    for (int i = layers_; i-- > 0;) {
      Launch(4, {weights[Index(i)], activations[Index(i)]});
      iteration.Died(activations[Index(i)]);
    }
    for (const BufferName& weight : weights) Launch(5, {weight});
  }
  int Length() const { return 4 * layers_ + 1; }

  void Launch(uint64_t what, const std::vector<BufferName>& buffers) {
    iteration.Begin(what);
    for (const BufferName& buffer : buffers) iteration.Touch(buffer);
    iteration.End();
  }
  BufferName New(Bytes bytes) { return {++ids_, iteration.Birth(), bytes}; }
  LaunchNumber Next(const BufferName& buffer) {
    bool known = false;
    iteration.Learn();
    const NextUse next = iteration.Next(buffer, &known);
    return known && !next.is_end ? next.launches : 0;
  }

  Iteration iteration;
  std::vector<BufferName> weights;
  std::vector<BufferName> activations;

 private:
  static size_t Index(int i) { return static_cast<size_t>(i); }
  int layers_;
  uint64_t ids_ = 0;
};

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
