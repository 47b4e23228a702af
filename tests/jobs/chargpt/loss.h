// Cross-entropy over rows of logits.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_LOSS_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_LOSS_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// Threads of GptLossMean's only block.
constexpr int kMeanThreads = 128;

// probabilities[row] = softmax(logits[row]); losses[row] = -log of the target's. One thread per
// row.
GPT_KERNEL void GptLossForward(const float* logits, const int* targets, float* probabilities,
                               float* losses, int rows, int symbols);
// *mean = average of losses, in a fixed order.
GPT_KERNEL void GptLossMean(const float* losses, float* mean, int rows);
// d_logits of the mean loss. One thread per row.
GPT_KERNEL void GptLossBackward(const float* probabilities, const int* targets, float* d_logits,
                                int rows, int symbols);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_LOSS_H_
