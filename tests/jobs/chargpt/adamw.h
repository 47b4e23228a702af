// One AdamW update of a tensor (Loshchilov and Hutter 2019, algorithm 2).

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_ADAMW_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_ADAMW_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

struct AdamWStep {
  float learning_rate;
  float beta1, beta2;
  float correction1, correction2;  // 1 / (1 - beta^step)
  float epsilon;
  float weight_decay;
};

// Elements per thread.
constexpr int kAdamWRun = 256;

GPT_KERNEL void GptAdamW(float* value, const float* gradient, float* moment1, float* moment2,
                         long long count, AdamWStep step);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_ADAMW_H_
