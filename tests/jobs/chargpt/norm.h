// Layer norm over rows of [rows][width].

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_NORM_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_NORM_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// One thread per row; mean and reciprocal deviation are kept for the backward pass.
GPT_KERNEL void GptNormForward(const float* in, const float* gain, const float* bias, float* out,
                               float* mean, float* rstd, int rows, int width);
// d_in[row] = gradient through the norm, plus d_residual[row]. One thread per row.
GPT_KERNEL void GptNormBackward(const float* in, const float* gain, const float* mean,
                                const float* rstd, const float* d_out, const float* d_residual,
                                float* d_in, int rows, int width);
// One thread per column: sums over rows in order.
GPT_KERNEL void GptNormParameterBackward(const float* in, const float* mean, const float* rstd,
                                         const float* d_out, float* d_gain, float* d_bias, int rows,
                                         int width);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_NORM_H_
