// The arithmetic of hash.h, shared by the kernel and the host function.

#ifndef TIDEMARK_KERNELS_HASH_MIX_H_
#define TIDEMARK_KERNELS_HASH_MIX_H_

#if defined(__CUDACC__)
#define TIDEMARK_HASH_MIX static __host__ __device__ __forceinline__
#else
#define TIDEMARK_HASH_MIX static inline
#endif

// Bytes hashed by one block, and threads of a block.
constexpr unsigned long long kHashBlockBytes = 65536;
constexpr unsigned kHashThreads = 256;

// SplitMix64's finaliser over the word and its index. An index is never 0, so a zero word counts.
TIDEMARK_HASH_MIX unsigned long long HashMix(unsigned long long word, unsigned long long index) {
  unsigned long long z = word + (index + 1) * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

#endif  // TIDEMARK_KERNELS_HASH_MIX_H_
