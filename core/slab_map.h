// Which block starts where inside one slab: a table over the 512 B grid of a chunk, so that an
// address finds its block without a walk. Only arena_allocator.cc and its walk use it. Threads:
// none of its own.

#ifndef TIDEMARK_CORE_SLAB_MAP_H_
#define TIDEMARK_CORE_SLAB_MAP_H_

#include <bit>

#include "core/arena_allocator.h"

namespace tidemark::core {

struct ArenaAllocator::SlabMap {
  static constexpr Bytes kUnits = kChunkBytes / kBlockBytes;

  void Clear() {
    for (uint64_t& word : bits) word = 0;
  }
  void Add(Block* block) {
    const Bytes unit = block->offset % kChunkBytes / kBlockBytes;
    start[unit] = block;
    bits[unit / 64] |= uint64_t{1} << unit % 64;
  }
  void Remove(Block* block) {
    const Bytes unit = block->offset % kChunkBytes / kBlockBytes;
    bits[unit / 64] &= ~(uint64_t{1} << unit % 64);
  }
  // The block that holds the byte at `within` of the chunk; unit 0 always starts one.
  Block* At(Bytes within) const {
    const Bytes unit = within / kBlockBytes;
    uint64_t word = bits[unit / 64] & (~uint64_t{0} >> (63 - unit % 64));
    Bytes index = unit / 64;
    while (word == 0) word = bits[--index];
    return start[index * 64 + 63 - static_cast<Bytes>(std::countl_zero(word))];
  }

  Block* start[kUnits];
  uint64_t bits[kUnits / 64];
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_SLAB_MAP_H_
