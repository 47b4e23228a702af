// Token and position embeddings; positions are rows % context.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_EMBEDDING_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_EMBEDDING_H_

#include "tests/jobs/chargpt/kernel_linkage.h"

// out[row] = tokens_table[token[row]] + positions_table[row % context]; one thread per row.
GPT_KERNEL void GptEmbed(const int* tokens, const float* token_table, const float* position_table,
                         float* out, int rows, int context, int width);
// Gradients without atomics: one thread per (symbol, run of kLanes columns) reads every row in
// order.
GPT_KERNEL void GptEmbedTokenBackward(const int* tokens, const float* d_out, float* d_table,
                                      int rows, int symbols, int width);
// One thread per (position, column) sums over the batch in order.
GPT_KERNEL void GptEmbedPositionBackward(const float* d_out, float* d_table, int batch, int context,
                                         int width);

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_EMBEDDING_H_
