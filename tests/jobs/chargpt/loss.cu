#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/lanes.h"
#include "tests/jobs/chargpt/loss.h"

// Natural logarithm for x in [1e-30, 1e30]: Cephes logf, without its special cases.
TIDEMARK_DEVICE float Log(float x) {
  int bits = __float_as_int(x);
  int exponent = (bits >> 23) - 126;
  float m = __int_as_float((bits & 0x007fffff) | 0x3f000000);  // [0.5, 1)
  if (m < 0.707106781f) {
    m = m + m;
    --exponent;
  }
  m = m - 1.0f;
  const float z = m * m;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float e = static_cast<float>(exponent);
  return m + (m * z * p + e * -2.12194440e-4f - 0.5f * z) + e * 0.693359375f;
}

TIDEMARK_KERNEL void GptLossForward(const float* logits, const int* targets, float* probabilities,
                                    float* losses, int rows, int symbols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* __restrict__ in = logits + static_cast<long long>(row) * symbols;
  float* __restrict__ out = probabilities + static_cast<long long>(row) * symbols;
  float largest = in[0];
  for (int i = 1; i < symbols; ++i) largest = in[i] > largest ? in[i] : largest;
  for (int i = 0; i < symbols; ++i) out[i] = Exp(in[i] - largest);
  const float sum = LaneSum(symbols, [out](int i) { return out[i]; });
  const float factor = 1.0f / sum;
  for (int i = 0; i < symbols; ++i) out[i] *= factor;
  losses[row] = Log(sum) - (in[targets[row]] - largest);
}

TIDEMARK_KERNEL void GptLossMean(const float* losses, float* mean, int rows) {
  __shared__ float partial[kMeanThreads];
  const int thread = threadIdx.x;
  float sum = 0.0f;
  for (int row = thread; row < rows; row += kMeanThreads) sum += losses[row];
  partial[thread] = sum;
  __syncthreads();
  for (int width = kMeanThreads / 2; width > 0; width /= 2) {
    if (thread < width) partial[thread] += partial[thread + width];
    __syncthreads();
  }
  if (thread == 0) *mean = partial[0] / rows;
}

TIDEMARK_KERNEL void GptLossBackward(const float* probabilities, const int* targets,
                                     float* d_logits, int rows, int symbols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* __restrict__ p = probabilities + static_cast<long long>(row) * symbols;
  float* __restrict__ out = d_logits + static_cast<long long>(row) * symbols;
  const float weight = 1.0f / rows;
  for (int i = 0; i < symbols; ++i) out[i] = p[i] * weight;
  out[targets[row]] -= weight;
}

TIDEMARK_TWIN_COST LossForwardCost(const float*, const int*, float*, float*, int rows,
                                   int symbols) {
  const double elements = 1.0 * rows * symbols;
  return {15.0 * elements, 8.0 * elements};
}
TIDEMARK_TWIN_COST LossMeanCost(const float*, float*, int rows) { return {1.0 * rows, 4.0 * rows}; }
TIDEMARK_TWIN_COST LossBackwardCost(const float*, const int*, float*, int rows, int symbols) {
  const double elements = 1.0 * rows * symbols;
  return {1.0 * elements, 8.0 * elements};
}

#define LOSS_KERNELS(KERNEL)                          \
  KERNEL(GptLossForward, kNoBarrier, LossForwardCost) \
  KERNEL(GptLossMean, kBarrier, LossMeanCost)         \
  KERNEL(GptLossBackward, kNoBarrier, LossBackwardCost)
TIDEMARK_TWIN_REGISTER(gpt_loss, LOSS_KERNELS);
