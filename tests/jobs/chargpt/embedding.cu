#include "kernels/host_twin.h"

#include "tests/jobs/chargpt/embedding.h"
#include "tests/jobs/chargpt/lanes.h"

TIDEMARK_KERNEL void GptEmbed(const int* tokens, const float* token_table,
                              const float* position_table, float* out, int rows, int context,
                              int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* __restrict__ symbol = token_table + static_cast<long long>(tokens[row]) * width;
  const float* __restrict__ place = position_table + static_cast<long long>(row % context) * width;
  float* __restrict__ sum = out + static_cast<long long>(row) * width;
  for (int i = 0; i < width; ++i) sum[i] = symbol[i] + place[i];
}

TIDEMARK_KERNEL void GptEmbedTokenBackward(const int* tokens, const float* d_out, float* d_table,
                                           int rows, int symbols, int width) {
  const int symbol = blockIdx.y * blockDim.y + threadIdx.y;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * kLanes;
  if (symbol >= symbols || first >= width) return;
  const int mine = width - first < kLanes ? width - first : kLanes;
  float sum[kLanes] = {};
  for (int row = 0; row < rows; ++row) {
    if (tokens[row] != symbol) continue;
    const float* values = d_out + static_cast<long long>(row) * width + first;
    for (int j = 0; j < mine; ++j) sum[j] += values[j];
  }
  for (int j = 0; j < mine; ++j)
    d_table[static_cast<long long>(symbol) * width + first + j] = sum[j];
}

TIDEMARK_KERNEL void GptEmbedPositionBackward(const float* d_out, float* d_table, int batch,
                                              int context, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int position = blockIdx.y * blockDim.y + threadIdx.y;
  if (position >= context || column >= width) return;
  const long long at = static_cast<long long>(position) * width + column;
  float sum = 0.0f;
  for (int b = 0; b < batch; ++b) sum += d_out[static_cast<long long>(b) * context * width + at];
  d_table[at] = sum;
}

TIDEMARK_TWIN_COST EmbedCost(const int*, const float*, const float*, float*, int rows, int,
                             int width) {
  return {1.0 * rows * width, 12.0 * rows * width};
}
TIDEMARK_TWIN_COST EmbedTokenBackwardCost(const int*, const float*, float*, int rows, int symbols,
                                          int width) {
  return {1.0 * rows * width, 4.0 * rows * width + 4.0 * symbols * (rows + width)};
}
TIDEMARK_TWIN_COST EmbedPositionBackwardCost(const float*, float*, int batch, int context,
                                             int width) {
  const double elements = 1.0 * batch * context * width;
  return {elements, 4.0 * elements};
}

#define EMBEDDING_KERNELS(KERNEL)                                   \
  KERNEL(GptEmbed, kNoBarrier, EmbedCost)                           \
  KERNEL(GptEmbedTokenBackward, kNoBarrier, EmbedTokenBackwardCost) \
  KERNEL(GptEmbedPositionBackward, kNoBarrier, EmbedPositionBackwardCost)
TIDEMARK_TWIN_REGISTER(gpt_embedding, EMBEDDING_KERNELS);
