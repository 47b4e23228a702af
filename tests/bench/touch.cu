// The smallest kernel with the parameters of a typical one: three buffers and a count.

#include "kernels/host_twin.h"

TIDEMARK_KERNEL void BenchTouch(const float* left, const float* right, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = left[i] + right[i];
}

#define BENCH_KERNELS(KERNEL) KERNEL(BenchTouch, kNoBarrier, nullptr)
TIDEMARK_TWIN_REGISTER(bench, BENCH_KERNELS);
