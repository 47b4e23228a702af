// A 64-bit hash of device bytes, computed where they lie: the proof that a buffer did not change.
// Sum over 8-byte words of a mix of word and position, so parts may be added in any order, and a
// word that moves changes the sum. Not cryptographic: it guards against bugs, not against an
// adversary.
//
// Plain functions over driver.h, no exceptions, no allocation. Threads: as the driver's own calls.

#ifndef TIDEMARK_KERNELS_HASH_H_
#define TIDEMARK_KERNELS_HASH_H_

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/driver.h"

namespace tidemark::kernels {

// The kernel in one context. `module` belongs to the context; UnloadHash or its destruction ends
// it.
struct HashModule {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
};

// Loads the kernel into the current context: the first image that the driver accepts, as from a fat
// binary. Returns the last driver error when it accepts none. May synchronise.
CUresult LoadHash(const Driver& driver, HashModule* hash);
CUresult UnloadHash(const Driver& driver, HashModule* hash);

// Part of a buffer to hash. `data` is a multiple of 8, and so is `position`, the byte offset of
// `data` in the buffer it is hashed as: the hashes of consecutive parts add up to that of the
// whole, if each part but the last is a multiple of 8 bytes.
struct HashRange {
  CUdeviceptr data = 0;
  uint64_t bytes = 0;
  uint64_t position = 0;
};

// Adds the hash of `range` to the 8 bytes at `result` (device or pinned host memory, aligned to 8),
// in stream order. The caller zeroes `result` first.
CUresult LaunchHash(const Driver& driver, const HashModule& hash, const HashRange& range,
                    CUdeviceptr result, CUstream stream);

// The same hash of host memory of any alignment.
uint64_t HashBytes(const void* data, size_t bytes, uint64_t position = 0);

// Module images in the order LoadHash tries them.
size_t HashImageCount();
const void* HashImage(size_t index);

}  // namespace tidemark::kernels

#endif  // TIDEMARK_KERNELS_HASH_H_
