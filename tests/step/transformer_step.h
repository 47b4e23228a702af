// Generates the training step of a decoder-only transformer: forward, backward, optimizer, as the
// kernels of a mixed-precision job would run. Sizes follow from the shape (2 bytes an element,
// 4 for softmax statistics and optimizer state); durations from a roofline: an operation takes the
// longer of FLOPs / flops_rate and bytes touched / memory_rate, plus a launch. Nothing is random
// but the sequence lengths, which come from the seed. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_TRANSFORMER_STEP_H_
#define TIDEMARK_TESTS_STEP_TRANSFORMER_STEP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/step/step_trace.h"

namespace tidemark::steps {

enum class Recompute : uint8_t {
  kNone,       // attention scores and everything else are saved
  kSelective,  // attention scores are computed again in the backward pass
  kFull,       // only each layer's input is saved
};

enum class OptimizerState : uint8_t {
  kNone,      // none on the device (plain SGD, or kept elsewhere)
  kResident,  // Adam: 12 bytes per parameter that may not move
  kMovable,   // the same, and idle from one optimizer pass to the next
};

struct TransformerShape {
  std::string name = "transformer";
  uint32_t layers = 24;
  uint32_t width = 2048;
  uint32_t heads = 16;
  uint32_t sequence = 2048;
  uint32_t batch = 8;
  uint32_t vocabulary = 32768;
  // One kernel that keeps two numbers per token and head instead of the scores.
  bool fused_attention = false;
  Recompute recompute = Recompute::kSelective;
  OptimizerState optimizer = OptimizerState::kNone;
  // Matrices are only read, as where small adapters are trained: no gradients, no state.
  bool frozen = false;
  // Above 1: parameters, gradients and state are sharded over so many ranks; a layer's parameters
  // are gathered before each pass and its gradients are reduced after.
  uint32_t ranks = 1;
  // Above 1: so many passes forward and backward add up to one step.
  uint32_t micro_batches = 1;
  bool variable_length = false;  // each of them with its own length, 1/4 to 1 of `sequence`
  uint64_t seed = 1;
  // About half of what an A100's data sheet promises, as matrix products reach it.
  double flops_rate = 150e12;   // FLOP/s
  double memory_rate = 1.5e12;  // device memory, bytes/s
  double network_rate = 50e9;   // gathers and reductions, bytes/s
  int64_t launch_ns = 4000;
};

NamedStep TransformerStep(const TransformerShape& shape);

// The shapes of the scoreboard: each in a regime of its own.
std::vector<TransformerShape> ScoreboardShapes();

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_TRANSFORMER_STEP_H_
