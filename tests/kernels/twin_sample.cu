// Small kernels that exercise what a twin source may use: indices, shared memory, barriers,
// atomics.

#include "kernels/host_twin.h"

TIDEMARK_DEVICE float Times(float a, float b) { return a * b; }

TIDEMARK_KERNEL void SampleScale(const float* in, float* out, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = Times(in[i], factor);
}

// Copies one column of each row only: a strided access.
TIDEMARK_KERNEL void SampleStride(char flag, const double* in, double* out, int rows, int columns) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows) out[row] = flag ? in[row * columns] : 0.0;
}

// Each block reverses its own blockDim.x floats through static and dynamic shared memory.
TIDEMARK_KERNEL void SampleReverse(float* data) {
  __shared__ float mirror[64];
  TIDEMARK_DYNAMIC_SHARED(float, copy);
  float* mine = data + blockIdx.x * blockDim.x;
  copy[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mirror[threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = mirror[threadIdx.x];
}

TIDEMARK_KERNEL void SampleHistogram(const unsigned char* in, int count, unsigned* bins) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) atomicAdd(&bins[in[i]], 1u);
}

TIDEMARK_KERNEL void SampleNothing() {}

TIDEMARK_TWIN_COST ScaleCost(const float*, float*, float, int count) {
  return {1.0 * count, 8.0 * count};
}

#define SAMPLE_KERNELS(KERNEL)                 \
  KERNEL(SampleScale, kNoBarrier, ScaleCost)   \
  KERNEL(SampleStride, kNoBarrier, nullptr)    \
  KERNEL(SampleReverse, kBarrier, nullptr)     \
  KERNEL(SampleHistogram, kNoBarrier, nullptr) \
  KERNEL(SampleNothing, kNoBarrier, nullptr)
TIDEMARK_TWIN_REGISTER(sample, SAMPLE_KERNELS);
