#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/adamw.h"

TIDEMARK_KERNEL void GptAdamW(float* value, const float* gradient, float* moment1, float* moment2,
                              long long count, AdamWStep step) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long begin = thread * kAdamWRun;
  const long long end = begin + kAdamWRun < count ? begin + kAdamWRun : count;
  float* __restrict__ w = value;
  const float* __restrict__ g = gradient;
  float* __restrict__ m = moment1;
  float* __restrict__ v = moment2;
  for (long long i = begin; i < end; ++i) {
    m[i] = step.beta1 * m[i] + (1.0f - step.beta1) * g[i];
    v[i] = step.beta2 * v[i] + (1.0f - step.beta2) * g[i] * g[i];
    const float update = m[i] * step.correction1 / (sqrtf(v[i] * step.correction2) + step.epsilon);
    w[i] -= step.learning_rate * (update + step.weight_decay * w[i]);
  }
}

TIDEMARK_TWIN_COST AdamWCost(float*, const float*, float*, float*, long long count, AdamWStep) {
  return {15.0 * count, 28.0 * count};
}

#define ADAMW_KERNELS(KERNEL) KERNEL(GptAdamW, kNoBarrier, AdamWCost)
TIDEMARK_TWIN_REGISTER(gpt_adamw, ADAMW_KERNELS);
