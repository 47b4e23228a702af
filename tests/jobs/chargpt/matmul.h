// Batched matrix products on strided views. Row-major; batch index is (batch, head).

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_MATMUL_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_MATMUL_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// What causality leaves out. Elements left out of an output keep what was there.
enum MatmulMask {
  kFull,
  kLowerOutput,       // only columns <= row of the output are needed
  kLowerA,            // a[row][k] is 0 for k > row
  kLowerATransposed,  // a[k][row] is 0 for k < row
};

// Rows and columns of the output that one thread computes.
constexpr int kTileRows = 8;
constexpr int kTileColumns = 16;

struct MatrixStrides {
  int row;          // elements from one row to the next
  long long batch;  // ... from one batch entry to the next
  long long head;
};

struct MatmulShape {
  int m, n, k;
  int batches;  // times heads
  int heads;
  int mask;
  MatrixStrides a, b, c;
};

struct TransposeShape {
  int rows, columns;  // of the input
  int batches;        // times heads
  int heads;
  MatrixStrides in, out;
};

// c[m][n] = sum over k of a[m][k] * b[k][n], plus bias[n] unless bias is null. Grid: x column
// tiles, y row tiles, z batch * heads + head.
GPT_KERNEL void GptMatmul(const float* a, const float* b, const float* bias, float* c,
                          MatmulShape shape);
// The same with a stored as [k][m].
GPT_KERNEL void GptMatmulTransposedA(const float* a, const float* b, float* c, MatmulShape shape);
// out[column][row] = in[row][column]; one thread per element, grid as above.
GPT_KERNEL void GptTranspose(const float* in, float* out, TransposeShape shape);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_MATMUL_H_
