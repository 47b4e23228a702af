// Steps for the scoreboard that transformer_step.h does not have: written down by hand as their
// kernels would run, durations from a roofline of the same device as transformer_step.h.
// Nothing is random. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_MODEL_STEP_H_
#define TIDEMARK_TESTS_STEP_MODEL_STEP_H_

#include <vector>

#include "tests/step/step_trace.h"

namespace tidemark::steps {

// Recommendation: 26 embedding tables, each read once at the start and updated once at the end in
// the opposite order, a small perceptron in between. Nearly all bytes go round once per step.
NamedStep EmbeddingTablesStep();

// A U-Net for images: skip connections from each level down to the same level up, then an Adam pass
// over all weights, then a pass that averages them. Two passes over state at the end of the step.
NamedStep AveragedUnetStep();

// A graph network on the whole graph: four feature blocks through six layers side by side, all of
// which read one adjacency matrix, forward and backward.
NamedStep WholeGraphStep();

// Inference that streams its weights: 60 equal layers, each read once, activations small.
NamedStep StreamedWeightsStep();

// The first of four stages of a pipeline, one forward, one backward: eight micro-batches, four of
// them in flight, then an Adam pass. Weights go round sixteen times, state once.
NamedStep PipelineStageStep();

// Sharded training with full recompute, whose gradients and Adam state are kept in a few large
// buckets of four layers each.
NamedStep OptimizerBucketsStep();

// Twelve layers of sixteen experts, each of which sees 0.7 times as many tokens as the one before
// (expert_step.h, which gives its durations). All weights, gradients and state go round.
NamedStep SkewedExpertsStep();

// All of the above.
std::vector<NamedStep> ModelSteps();

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_MODEL_STEP_H_
