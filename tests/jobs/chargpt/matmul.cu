// Matrix products, one register tile of the output per thread: k outermost, contiguous columns
// innermost, every output summed by one thread in order of k.

#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/matmul.h"
#include "tests/jobs/chargpt/vector.h"

TIDEMARK_DEVICE long long BatchOffset(const MatrixStrides& strides, int heads) {
  return strides.batch * (blockIdx.z / heads) + strides.head * (blockIdx.z % heads);
}

struct TileInput {
  const float* a;
  int a_row, a_k;  // elements from one row, and one k, to the next
  const float* b;
  int b_k;
  const float* bias;
  float* c;
  int c_row;
  int first, last;  // k
};

// Outputs [row, row + kRows) x [column, column + kVectors * kWidth).
template <int kRows, int kVectors, int kWidth>
TIDEMARK_DEVICE void Tile(const TileInput& in, int row, int column) {
  Floats<kWidth> sum[kRows][kVectors] = {};
  const float* a = in.a + static_cast<long long>(row) * in.a_row;
  const float* b = in.b + column;
  for (int k = in.first; k < in.last; ++k) {
    Floats<kWidth> of_b[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      of_b[v] = LoadFloats<kWidth>(b + static_cast<long long>(k) * in.b_k + v * kWidth);
    }
    const float* of_a = a + static_cast<long long>(k) * in.a_k;
    for (int i = 0; i < kRows; ++i) {
      const float factor = of_a[static_cast<long long>(i) * in.a_row];
      for (int v = 0; v < kVectors; ++v) AddScaled(sum[i][v], factor, of_b[v]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    float* out = in.c + static_cast<long long>(row + i) * in.c_row + column;
    for (int v = 0; v < kVectors; ++v) {
      if (in.bias != nullptr) {
        AddScaled(sum[i][v], 1.0f, LoadFloats<kWidth>(in.bias + column + v * kWidth));
      }
      StoreFloats(out + v * kWidth, sum[i][v]);
    }
  }
}

template <int kRows>
TIDEMARK_DEVICE void Columns(const TileInput& in, int row, int column, int end) {
  for (; column + 8 <= end; column += 8) Tile<kRows, 1, 8>(in, row, column);
  for (; column + 4 <= end; column += 4) Tile<kRows, 1, 4>(in, row, column);
  for (; column < end; ++column) Tile<kRows, 1, 1>(in, row, column);
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
  const int end = column + kTileColumns < shape.n ? column + kTileColumns : shape.n;
  if (rows < kTileRows) {
    for (int i = 0; i < rows; ++i) Columns<1>(in, row + i, column, end);
  } else if (end - column == kTileColumns) {
    Tile<kTileRows / 2, 2, 8>(in, row, column);
    Tile<kTileRows / 2, 2, 8>(in, row + kTileRows / 2, column);
  } else {
    Columns<kTileRows>(in, row, column, end);
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
