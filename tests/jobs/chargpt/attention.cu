#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/attention.h"
#include "tests/jobs/chargpt/lanes.h"

TIDEMARK_DEVICE float MaxOf(const float* values, int count) {
  float lane[kLanes];
  for (int j = 0; j < kLanes; ++j) lane[j] = values[0];
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lane[j] = values[i + j] > lane[j] ? values[i + j] : lane[j];
  }
  float largest = lane[0];
  for (; i < count; ++i) largest = values[i] > largest ? values[i] : largest;
  for (int j = 1; j < kLanes; ++j) largest = lane[j] > largest ? lane[j] : largest;
  return largest;
}

TIDEMARK_KERNEL void GptSoftmaxForward(const float* scores, float* probabilities, int rows,
                                       int context, float scale) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* __restrict__ in = scores + static_cast<long long>(row) * context;
  float* __restrict__ out = probabilities + static_cast<long long>(row) * context;
  const int attended = row % context + 1;
  const float largest = MaxOf(in, attended);
  for (int i = 0; i < attended; ++i) out[i] = Exp((in[i] - largest) * scale);
  const float factor = 1.0f / LaneSum(attended, [out](int i) { return out[i]; });
  for (int i = 0; i < attended; ++i) out[i] *= factor;
  for (int i = attended; i < context; ++i) out[i] = 0.0f;
}

TIDEMARK_KERNEL void GptSoftmaxBackward(const float* probabilities, const float* d_probabilities,
                                        float* d_scores, int rows, int context, float scale) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const long long offset = static_cast<long long>(row) * context;
  const float* __restrict__ p = probabilities + offset;
  const float* __restrict__ dp = d_probabilities + offset;
  float* __restrict__ out = d_scores + offset;
  const int attended = row % context + 1;
  const float mean = LaneSum(attended, [p, dp](int i) { return p[i] * dp[i]; });
  for (int i = 0; i < attended; ++i) out[i] = p[i] * (dp[i] - mean) * scale;
  for (int i = attended; i < context; ++i) out[i] = 0.0f;
}

TIDEMARK_TWIN_COST SoftmaxForwardCost(const float*, float*, int rows, int context, float) {
  const double elements = 1.0 * rows * context;
  return {10.0 * elements, 6.0 * elements};
}
TIDEMARK_TWIN_COST SoftmaxBackwardCost(const float*, const float*, float*, int rows, int context,
                                       float) {
  const double elements = 1.0 * rows * context;
  return {3.0 * elements, 8.0 * elements};
}

#define ATTENTION_KERNELS(KERNEL)                           \
  KERNEL(GptSoftmaxForward, kNoBarrier, SoftmaxForwardCost) \
  KERNEL(GptSoftmaxBackward, kNoBarrier, SoftmaxBackwardCost)
TIDEMARK_TWIN_REGISTER(gpt_attention, ATTENTION_KERNELS);
