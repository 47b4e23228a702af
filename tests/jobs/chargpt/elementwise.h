// GELU, residual sums and column sums.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_ELEMENTWISE_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_ELEMENTWISE_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// Elements per thread of the element-wise kernels: contiguous, so that a host twin vectorises them.
constexpr int kRun = 256;

GPT_KERNEL void GptGeluForward(const float* in, float* out, long long count);
GPT_KERNEL void GptGeluBackward(const float* in, const float* d_out, float* d_in, long long count);
GPT_KERNEL void GptAdd(const float* a, const float* b, float* out, long long count);
// out[column] = sum over rows of in[row][column], in order; kLanes columns per thread.
GPT_KERNEL void GptColumnSum(const float* in, float* out, int rows, int columns);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_ELEMENTWISE_H_
