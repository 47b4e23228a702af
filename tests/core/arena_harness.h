// An arena without a device: maps chunks when the allocator plans an extension, up to a capacity,
// and keeps the naive model beside it: for each 512 B unit who owns it and the last fence it was
// freed with. Threads: one.

#ifndef TIDEMARK_TESTS_CORE_ARENA_HARNESS_H_
#define TIDEMARK_TESTS_CORE_ARENA_HARNESS_H_

#include <algorithm>
#include <vector>

#include "core/arena_allocator.h"

namespace tidemark::core {

class ArenaHarness {
 public:
  ArenaHarness(ChunkIndex chunks, ChunkIndex capacity)
      : capacity_(capacity), owner_(chunks * kChunkBytes / kBlockBytes), fence_(owner_.size()) {
    ok_ = table_.Init(chunks) && arena_.Init(&table_);
  }

  // As the shim does: mapped holes, then new chunks, then wholly free chunks from elsewhere.
  Block* Allocate(Bytes bytes, FenceId passed = 0) {
    for (int round = 0; round < 2; ++round) {
      if (Block* block = arena_.Allocate({bytes, passed})) return Record(block, passed);
      Extension extension;
      if (round == 1 || !arena_.PlanExtension(bytes, &extension)) break;
      if (!MapAll(extension)) break;
    }
    Block* block = arena_.Allocate({bytes, passed, kAnyStream, true});
    return block == nullptr ? nullptr : Record(block, passed);
  }

  void Free(Block* block, FenceId fence = 0) {
    for (Bytes unit = block->offset / kBlockBytes; unit < block->end() / kBlockBytes; ++unit) {
      if (owner_[unit] != block) ok_ = false;
      owner_[unit] = nullptr;
      fence_[unit] = std::max(fence_[unit], fence);
    }
    arena_.Free(block, fence);
  }

  // Unmaps one wholly free chunk outside [first, first + count); its fence counts as waited for.
  bool UnmapOne(ChunkIndex first, ChunkIndex count) {
    arena_.FoldCache();
    for (ChunkIndex chunk = table_.high_water(); chunk-- > 0;) {
      if (table_.state(chunk) == ChunkState::kUnmapped || table_.live(chunk) != 0) continue;
      if (chunk >= first && chunk < first + count) continue;
      if (!arena_.MarkUnmapped(chunk)) return ok_ = false;
      table_.SetState(chunk, ChunkState::kUnmapped);
      const Bytes units = kChunkBytes / kBlockBytes;
      std::fill_n(fence_.begin() + static_cast<long>(chunk * units), units, 0);
      return true;
    }
    return false;
  }

  bool Valid() const { return ok_ && arena_.Validate(); }
  ChunkTable& table() { return table_; }
  ArenaAllocator& arena() { return arena_; }

 private:
  bool MapAll(const Extension& extension) {
    for (ChunkIndex c = extension.first; c < extension.first + extension.count; ++c) {
      if (table_.state(c) != ChunkState::kUnmapped) continue;
      if (table_.device_chunks() == capacity_ && !UnmapOne(extension.first, extension.count)) {
        return false;
      }
      table_.SetState(c, ChunkState::kDevice);
      if (!arena_.MarkMapped(c)) return ok_ = false;
    }
    return true;
  }

  Block* Record(Block* block, FenceId passed) {
    const FenceId known = std::max(block->fence, passed);
    for (Bytes unit = block->offset / kBlockBytes; unit < block->end() / kBlockBytes; ++unit) {
      if (owner_[unit] != nullptr || fence_[unit] > known) ok_ = false;
      owner_[unit] = block;
    }
    return block;
  }

  ChunkIndex capacity_;
  bool ok_ = false;
  ChunkTable table_;
  ArenaAllocator arena_;
  std::vector<Block*> owner_;
  std::vector<FenceId> fence_;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_ARENA_HARNESS_H_
