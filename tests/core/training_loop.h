// A training loop as the gate would see it, over core/iteration.h: for the tests of what is learned
// from it and of what follows a plan for it. Threads: one.

#ifndef TIDEMARK_TESTS_CORE_TRAINING_LOOP_H_
#define TIDEMARK_TESTS_CORE_TRAINING_LOOP_H_

#include <gtest/gtest.h>

#include <vector>

#include "core/iteration.h"

namespace tidemark::core {

// A net of equal layers: weights that stay, activations born in the forward pass and freed in the
// backward pass, an optimizer over all weights.
class TrainingLoop {
 public:
  explicit TrainingLoop(int layers, Bytes scale = 1) : layers_(layers), scale_(scale) {
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
  BufferName New(Bytes bytes) { return {++ids_, iteration.Birth(), bytes * scale_}; }
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
  Bytes scale_;
  uint64_t ids_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_TRAINING_LOOP_H_
