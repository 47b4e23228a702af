#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/elementwise.h"
#include "tests/jobs/chargpt/lanes.h"

// [begin, end) of the calling thread's run.
struct Run {
  long long begin, end;
};
TIDEMARK_DEVICE Run MyRun(long long count) {
  const long long thread = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  const long long begin = thread * kRun;
  return {begin, begin + kRun < count ? begin + kRun : count};
}

// tanh(u) for the approximation 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
constexpr float kSlope = 0.7978845608f;
constexpr float kCubic = 0.044715f;
TIDEMARK_DEVICE float GeluTanh(float x) {
  const float u = kSlope * (x + kCubic * x * x * x);
  const float limited = u > 15.0f ? 15.0f : u;
  return 1.0f - 2.0f / (Exp(2.0f * limited) + 1.0f);
}

TIDEMARK_KERNEL void GptGeluForward(const float* in, float* out, long long count) {
  const Run run = MyRun(count);
  const float* __restrict__ x = in;
  float* __restrict__ y = out;
  for (long long i = run.begin; i < run.end; ++i) y[i] = 0.5f * x[i] * (1.0f + GeluTanh(x[i]));
}

TIDEMARK_KERNEL void GptGeluBackward(const float* in, const float* d_out, float* d_in,
                                     long long count) {
  const Run run = MyRun(count);
  const float* __restrict__ x = in;
  const float* __restrict__ dy = d_out;
  float* __restrict__ dx = d_in;
  for (long long i = run.begin; i < run.end; ++i) {
    const float t = GeluTanh(x[i]);
    const float slope = kSlope * (1.0f + 3.0f * kCubic * x[i] * x[i]);
    dx[i] = dy[i] * (0.5f * (1.0f + t) + 0.5f * x[i] * (1.0f - t * t) * slope);
  }
}

TIDEMARK_KERNEL void GptAdd(const float* a, const float* b, float* out, long long count) {
  const Run run = MyRun(count);
  const float* __restrict__ x = a;
  const float* __restrict__ y = b;
  float* __restrict__ z = out;
  for (long long i = run.begin; i < run.end; ++i) z[i] = x[i] + y[i];
}

TIDEMARK_KERNEL void GptColumnSum(const float* in, float* out, int rows, int columns) {
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * kLanes;
  if (first >= columns) return;
  const int mine = columns - first < kLanes ? columns - first : kLanes;
  float sum[kLanes] = {};
  for (int row = 0; row < rows; ++row) {
    const float* values = in + static_cast<long long>(row) * columns + first;
    if (mine == kLanes) {
      for (int j = 0; j < kLanes; ++j) sum[j] += values[j];
    } else {
      for (int j = 0; j < mine; ++j) sum[j] += values[j];
    }
  }
  for (int j = 0; j < mine; ++j) out[first + j] = sum[j];
}

TIDEMARK_TWIN_COST GeluForwardCost(const float*, float*, long long count) {
  return {25.0 * count, 8.0 * count};
}
TIDEMARK_TWIN_COST GeluBackwardCost(const float*, const float*, float*, long long count) {
  return {35.0 * count, 12.0 * count};
}
TIDEMARK_TWIN_COST AddCost(const float*, const float*, float*, long long count) {
  return {1.0 * count, 12.0 * count};
}
TIDEMARK_TWIN_COST ColumnSumCost(const float*, float*, int rows, int columns) {
  return {1.0 * rows * columns, 4.0 * rows * columns};
}

#define ELEMENTWISE_KERNELS(KERNEL)                     \
  KERNEL(GptGeluForward, kNoBarrier, GeluForwardCost)   \
  KERNEL(GptGeluBackward, kNoBarrier, GeluBackwardCost) \
  KERNEL(GptAdd, kNoBarrier, AddCost)                   \
  KERNEL(GptColumnSum, kNoBarrier, ColumnSumCost)
TIDEMARK_TWIN_REGISTER(gpt_elementwise, ELEMENTWISE_KERNELS);
