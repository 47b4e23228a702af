// Causal softmax over rows of attention scores, [batch * heads * context][context].

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_ATTENTION_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_ATTENTION_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// Row r attends to columns 0 .. r % context; the others become 0. One thread per row.
GPT_KERNEL void GptSoftmaxForward(const float* scores, float* probabilities, int rows, int context,
                                  float scale);
// Gradient with respect to the scores; columns not attended to become 0.
GPT_KERNEL void GptSoftmaxBackward(const float* probabilities, const float* d_probabilities,
                                   float* d_scores, int rows, int context, float scale);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_ATTENTION_H_
