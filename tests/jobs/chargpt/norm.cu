#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/lanes.h"
#include "tests/jobs/chargpt/norm.h"

TIDEMARK_KERNEL void GptNormForward(const float* in, const float* gain, const float* bias,
                                    float* out, float* mean, float* rstd, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* __restrict__ x = in + static_cast<long long>(row) * width;
  float* __restrict__ y = out + static_cast<long long>(row) * width;
  const float average = LaneSum(width, [x](int i) { return x[i]; }) / width;
  const float variance =
      LaneSum(width, [x, average](int i) { return (x[i] - average) * (x[i] - average); }) / width;
  const float scale = 1.0f / sqrtf(variance + 1e-5f);
  for (int i = 0; i < width; ++i) y[i] = (x[i] - average) * scale * gain[i] + bias[i];
  mean[row] = average;
  rstd[row] = scale;
}

TIDEMARK_KERNEL void GptNormBackward(const float* in, const float* gain, const float* mean,
                                     const float* rstd, const float* d_out, const float* d_residual,
                                     float* d_in, int rows, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const long long offset = static_cast<long long>(row) * width;
  const float* __restrict__ x = in + offset;
  const float* __restrict__ dy = d_out + offset;
  const float* __restrict__ g = gain;
  const float* __restrict__ rest = d_residual + offset;
  float* __restrict__ dx = d_in + offset;
  const float average = mean[row];
  const float scale = rstd[row];
  const float sum = LaneSum(width, [g, dy](int i) { return g[i] * dy[i]; }) / width;
  const float product =
      LaneSum(width, [g, dy, x, average,
                      scale](int i) { return g[i] * dy[i] * ((x[i] - average) * scale); }) /
      width;
  for (int i = 0; i < width; ++i) {
    const float normed = (x[i] - average) * scale;
    dx[i] = rest[i] + (g[i] * dy[i] - sum - normed * product) * scale;
  }
}

TIDEMARK_KERNEL void GptNormParameterBackward(const float* in, const float* mean, const float* rstd,
                                              const float* d_out, float* d_gain, float* d_bias,
                                              int rows, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  float gain = 0.0f;
  float bias = 0.0f;
  for (int row = 0; row < rows; ++row) {
    const long long at = static_cast<long long>(row) * width + column;
    gain += d_out[at] * ((in[at] - mean[row]) * rstd[row]);
    bias += d_out[at];
  }
  d_gain[column] = gain;
  d_bias[column] = bias;
}

TIDEMARK_TWIN_COST NormForwardCost(const float*, const float*, const float*, float*, float*, float*,
                                   int rows, int width) {
  const double elements = 1.0 * rows * width;
  return {8.0 * elements, 8.0 * elements};
}
TIDEMARK_TWIN_COST NormBackwardCost(const float*, const float*, const float*, const float*,
                                    const float*, const float*, float*, int rows, int width) {
  const double elements = 1.0 * rows * width;
  return {14.0 * elements, 16.0 * elements};
}
TIDEMARK_TWIN_COST NormParameterBackwardCost(const float*, const float*, const float*, const float*,
                                             float*, float*, int rows, int width) {
  const double elements = 1.0 * rows * width;
  return {5.0 * elements, 8.0 * elements};
}

#define NORM_KERNELS(KERNEL)                            \
  KERNEL(GptNormForward, kNoBarrier, NormForwardCost)   \
  KERNEL(GptNormBackward, kNoBarrier, NormBackwardCost) \
  KERNEL(GptNormParameterBackward, kNoBarrier, NormParameterBackwardCost)
TIDEMARK_TWIN_REGISTER(gpt_norm, NORM_KERNELS);
