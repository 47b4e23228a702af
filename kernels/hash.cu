// The hash kernel. Its traced twin is written by hand: what it reads is plain from its parameters,
// and code for a preloaded library must not bring the constructors of compiler instrumentation.

#if !defined(__CUDACC__)
#define TIDEMARK_TWIN_HAS_TRACED 1
#endif
#include "kernels/hash_mix.h"
#include "kernels/host_twin.h"

using Word = unsigned long long;

// The sum over a warp, in its first lane; host twins run thread by thread, so theirs is a warp of
// one.
#if defined(__CUDACC__)
TIDEMARK_DEVICE bool SumOfWarp(Word* sum) {
  for (int lanes = 16; lanes > 0; lanes /= 2) *sum += __shfl_down_sync(0xffffffffu, *sum, lanes);
  return threadIdx.x % 32 == 0;
}
#else
TIDEMARK_DEVICE bool SumOfWarp(Word*) { return true; }
#endif

// Block b hashes bytes [b, b + 1) * kHashBlockBytes. A last incomplete word is filled with zeros.
TIDEMARK_KERNEL void TidemarkHash(const Word* data, Word bytes, Word first_index, Word* result) {
  const Word block_words = kHashBlockBytes / sizeof(Word);
  const Word whole = bytes / sizeof(Word);
  const Word begin = blockIdx.x * block_words;
  const Word end = begin + block_words < whole ? begin + block_words : whole;
  Word sum = 0;
  for (Word i = begin + threadIdx.x; i < end; i += blockDim.x) {
    sum += HashMix(data[i], first_index + i);
  }
  const Word rest = bytes % sizeof(Word);
  if (rest != 0 && whole / block_words == blockIdx.x && threadIdx.x == 0) {
    const unsigned char* tail = reinterpret_cast<const unsigned char*>(data + whole);
    Word word = 0;
    for (Word i = 0; i < rest; ++i) word |= static_cast<Word>(tail[i]) << (8 * i);
    sum += HashMix(word, first_index + whole);
  }
  if (SumOfWarp(&sum) && sum != 0) atomicAdd(result, sum);
}

TIDEMARK_TWIN_COST HashCost(const Word*, Word bytes, Word, Word*) {
  return {static_cast<double>(bytes), static_cast<double>(bytes)};
}

#define HASH_KERNELS(KERNEL) KERNEL(TidemarkHash, kNoBarrier, HashCost)
TIDEMARK_TWIN_IMAGE(hash, HASH_KERNELS);

#if !defined(__CUDACC__)
extern "C" void tidemark_traced_TidemarkHash(const tm_twin_launch* launch, uint64_t first,
                                             uint64_t last) {
  tidemark_twin::Twin<&TidemarkHash>::RunBlocks(launch, first, last);
  if (launch->touch == nullptr) return;
  const char* data = *static_cast<const char* const*>(launch->params[0]);
  const Word bytes = *static_cast<const Word*>(launch->params[1]);
  const Word begin = first * kHashBlockBytes;
  const Word end = min(last * kHashBlockBytes, bytes);
  if (begin < end) launch->touch(launch->touch_context, data + begin, end - begin, 0);
  launch->touch(launch->touch_context, *static_cast<Word* const*>(launch->params[3]), sizeof(Word),
                1);
}
#endif
