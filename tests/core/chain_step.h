// The step that the planner's tests look at by hand: forward and backward through a chain of
// layers. Threads: none of its own.

#ifndef TIDEMARK_TESTS_CORE_CHAIN_STEP_H_
#define TIDEMARK_TESTS_CORE_CHAIN_STEP_H_

#include <vector>

#include "core/step.h"
#include "tests/step/step_builder.h"

namespace tidemark::core {

// Weights are read forward and written backward, activations of `bytes` are written forward and
// read backward; a layer takes `duration` forward and twice that backward.
inline Step ChainStep(uint32_t layers, Bytes bytes, Nanoseconds duration) {
  using Buffers = steps::StepBuilder::Buffers;
  steps::StepBuilder builder;
  Buffers weights, activations;
  for (uint32_t l = 0; l < layers; ++l) weights.push_back(builder.Persistent(bytes / 4));
  for (uint32_t l = 0; l < layers; ++l) activations.push_back(builder.Transient(bytes));
  for (uint32_t l = 0; l < layers; ++l) {
    Buffers reads = {weights[l]};
    if (l > 0) reads.push_back(activations[l - 1]);
    builder.Op(duration, reads, {activations[l]});
  }
  for (uint32_t l = layers; l-- > 0;) {
    Buffers reads = {activations[l]};
    if (l > 0) reads.push_back(activations[l - 1]);
    builder.Op(2 * duration, reads, {weights[l]});
  }
  return builder.Take();
}

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_CHAIN_STEP_H_
