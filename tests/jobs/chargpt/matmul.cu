// Matrix products, one register tile of the output per thread: k outermost, contiguous columns
// innermost, every output summed by one thread in order of k.

#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/matmul.h"

TIDEMARK_DEVICE long long BatchOffset(const MatrixStrides& strides, int heads) {
  return strides.batch * (blockIdx.z / heads) + strides.head * (blockIdx.z % heads);
}

// Accumulates kRows x kColumns outputs over k in [first, last). a advances by a_k per k and a_row
// per output row.
template <int kRows, int kColumns>
TIDEMARK_DEVICE void Tile(const float* __restrict__ a, int a_row, int a_k,
                          const float* __restrict__ b, int b_k, int first, int last,
                          float (&sum)[kRows][kColumns]) {
  for (int k = first; k < last; ++k) {
    const float* row_of_b = b + static_cast<long long>(k) * b_k;
    const float* column_of_a = a + static_cast<long long>(k) * a_k;
    for (int i = 0; i < kRows; ++i) {
      const float factor = column_of_a[static_cast<long long>(i) * a_row];
      for (int j = 0; j < kColumns; ++j) sum[i][j] += factor * row_of_b[j];
    }
  }
}

struct TileInput {
  const float* a;
  int a_row, a_k;
  const float* b;
  int b_k;
  const float* bias;
  float* c;
  int c_row;
  int first, last;
};

template <int kRows, int kColumns>
TIDEMARK_DEVICE void TileOut(const TileInput& in, int row, int column) {
  float sum[kRows][kColumns] = {};
  Tile<kRows, kColumns>(in.a + static_cast<long long>(row) * in.a_row, in.a_row, in.a_k,
                        in.b + column, in.b_k, in.first, in.last, sum);
  for (int i = 0; i < kRows; ++i) {
    float* out = in.c + static_cast<long long>(row + i) * in.c_row + column;
    for (int j = 0; j < kColumns; ++j) {
      out[j] = in.bias == nullptr ? sum[i][j] : sum[i][j] + in.bias[column + j];
    }
  }
}

template <int kRows>
TIDEMARK_DEVICE void Columns(const TileInput& in, int row, int column, int columns) {
  if (columns >= kTileColumns) {
    TileOut<kRows, kTileColumns>(in, row, column);
  } else if (columns >= 4) {
    TileOut<kRows, 4>(in, row, column);
    for (int j = 4; j < columns; ++j) TileOut<kRows, 1>(in, row, column + j);
  } else {
    for (int j = 0; j < columns; ++j) TileOut<kRows, 1>(in, row, column + j);
  }
}

TIDEMARK_DEVICE void OneThread(TileInput in, const MatmulShape& shape) {
  const int row = (blockIdx.y * blockDim.y + threadIdx.y) * kTileRows;
  const int column = (blockIdx.x * blockDim.x + threadIdx.x) * kTileColumns;
  if (row >= shape.m || column >= shape.n) return;
  const int rows = shape.m - row < kTileRows ? shape.m - row : kTileRows;
  if (shape.mask == kLowerOutput && column >= row + rows) return;
  in.first = shape.mask == kLowerATransposed ? row : 0;
  in.last = shape.k;
  if (shape.mask == kLowerA && row + rows < shape.k) in.last = row + rows;
  if (rows == kTileRows) {
    Columns<kTileRows>(in, row, column, shape.n - column);
  } else {
    for (int i = 0; i < rows; ++i) Columns<1>(in, row + i, column, shape.n - column);
  }
}

TIDEMARK_KERNEL void GptMatmul(const float* a, const float* b, const float* bias, float* c,
                               MatmulShape shape) {
  OneThread(
      {a + BatchOffset(shape.a, shape.heads), shape.a.row, 1, b + BatchOffset(shape.b, shape.heads),
       shape.b.row, bias, c + BatchOffset(shape.c, shape.heads), shape.c.row, 0, 0},
      shape);
}

TIDEMARK_KERNEL void GptMatmulTransposedA(const float* a, const float* b, float* c,
                                          MatmulShape shape) {
  OneThread(
      {a + BatchOffset(shape.a, shape.heads), 1, shape.a.row, b + BatchOffset(shape.b, shape.heads),
       shape.b.row, nullptr, c + BatchOffset(shape.c, shape.heads), shape.c.row, 0, 0},
      shape);
}

TIDEMARK_KERNEL void GptTranspose(const float* in, float* out, TransposeShape shape) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= shape.rows || column >= shape.columns) return;
  const float* from = in + BatchOffset(shape.in, shape.heads);
  float* to = out + BatchOffset(shape.out, shape.heads);
  to[static_cast<long long>(column) * shape.out.row + row] =
      from[static_cast<long long>(row) * shape.in.row + column];
}

TIDEMARK_TWIN_COST ProductCost(const MatmulShape& shape) {
  const double m = shape.m, n = shape.n, k = shape.k;
  const double batch = shape.batches;
  const double masked = shape.mask == kFull ? 1.0 : 0.5;
  return {2.0 * m * n * k * batch * masked, 4.0 * (m * k + k * n + m * n) * batch};
}
TIDEMARK_TWIN_COST MatmulCost(const float*, const float*, const float*, float*, MatmulShape shape) {
  return ProductCost(shape);
}
TIDEMARK_TWIN_COST MatmulTransposedACost(const float*, const float*, float*, MatmulShape shape) {
  return ProductCost(shape);
}
TIDEMARK_TWIN_COST TransposeCost(const float*, float*, TransposeShape shape) {
  return {0.0, 8.0 * shape.rows * shape.columns * shape.batches};
}

#define MATMUL_KERNELS(KERNEL)                                    \
  KERNEL(GptMatmul, kNoBarrier, MatmulCost)                       \
  KERNEL(GptMatmulTransposedA, kNoBarrier, MatmulTransposedACost) \
  KERNEL(GptTranspose, kNoBarrier, TransposeCost)
TIDEMARK_TWIN_REGISTER(gpt_matmul, MATMUL_KERNELS);
