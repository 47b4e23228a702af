// A large step whose state goes round: layers of many experts, of which the first see most of the
// tokens; forward, backward, then one update of each expert's state. Nearly all bytes outlive the
// step. Nothing is random. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_EXPERT_STEP_H_
#define TIDEMARK_TESTS_STEP_EXPERT_STEP_H_

#include <vector>

#include "core/units.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {

inline core::Step ExpertStep(uint32_t layers, uint32_t experts) {
  constexpr core::Bytes kWeight = 32 * core::kMiB, kRow = 64 * core::kMiB;
  constexpr core::Nanoseconds kAllTokens = 1'000'000, kUpdate = 150'000, kLeast = 10'000;
  constexpr core::Nanoseconds kNextExpert = 70;  // percent of the tokens of the one before
  StepBuilder s;
  struct Layer {
    core::BufferIndex input;
    StepBuilder::Buffers weights, gradients, outputs;
  };
  std::vector<Layer> all(layers);
  core::BufferIndex x = s.Transient(kRow);
  s.Op(kLeast, {}, {x});
  for (Layer& layer : all) {
    layer.input = x;
    core::Nanoseconds time = kAllTokens;
    for (uint32_t e = 0; e < experts; ++e, time = time * kNextExpert / 100) {
      layer.weights.push_back(s.Persistent(kWeight));
      layer.gradients.push_back(s.Persistent(kWeight));
      layer.outputs.push_back(s.Transient(kRow * static_cast<core::Bytes>(time) / kAllTokens + 1));
      s.Op(kLeast + time, {x, layer.weights[e]}, {layer.outputs[e]});
    }
    x = s.Transient(kRow);
    s.Op(kLeast, layer.outputs, {x});
  }
  for (auto layer = all.rbegin(); layer != all.rend(); ++layer) {
    const core::BufferIndex gradient = s.Transient(kRow);
    core::Nanoseconds time = 2 * kAllTokens;
    for (uint32_t e = 0; e < experts; ++e, time = time * kNextExpert / 100) {
      s.Op(kLeast + time, {x, layer->input, layer->outputs[e], layer->weights[e]},
           {gradient, layer->gradients[e]});
    }
    x = gradient;
  }
  for (const Layer& layer : all) {
    for (uint32_t e = 0; e < experts; ++e) {
      const core::BufferIndex state = s.Persistent(4 * kWeight);
      s.Op(kUpdate, {layer.gradients[e]}, {state, layer.weights[e]});
    }
  }
  return s.Take();
}

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_EXPERT_STEP_H_
