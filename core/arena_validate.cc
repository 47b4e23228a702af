// The validity walk of core/arena_allocator.h: every invariant, in one pass over the blocks and one
// over the chunks. Threads: as the header says.

#include <new>

#include "core/arena_allocator.h"
#include "core/slab_map.h"

namespace tidemark::core {

bool ArenaAllocator::ValidateBlock(const Block* block) const {
  if (block->size == 0 || block->size % kBlockBytes != 0) return false;
  if (block->next != nullptr && block->next->previous != block) return false;
  if (block->next != nullptr && block->next->offset != block->end()) return false;
  if (CanMerge(block, block->next)) return false;
  if (BlockAt(block->offset) != block || BlockAt(block->end() - 1) != block) return false;
  const ChunkIndex first = ChunkOf(block->offset);
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  const bool leaving = block->state == Block::State::kLeaving;
  const bool mapped = !leaving && (block->state != Block::State::kFree || block->mapped);
  for (ChunkIndex chunk = first; chunk <= last; ++chunk) {
    if ((table_->state(chunk) != ChunkState::kUnmapped) != mapped) return false;
  }
  if (block->small && (first != last || starts_[first].slab == nullptr)) return false;
  if (!block->small && (starts_[first].slab != nullptr)) return false;
  if (block->state == Block::State::kLive) return block->requested <= block->size;
  if (leaving) return !block->mapped && !block->small;
  if (!block->mapped) return block->fence == 0;
  return true;
}

bool ArenaAllocator::ValidateIndexes() const {
  for (ChunkIndex chunk = 0; chunk < table_->size(); ++chunk) {
    const bool starts = (start_bits_[chunk / 64] >> chunk % 64 & 1) != 0;
    if (starts != (starts_[chunk].first != nullptr)) return false;
  }
  uint64_t runs = 0;
  for (uint32_t units = bins_.AtLeast(0); units != UnitBins::kNone;
       units = bins_.AtLeast(units + 1)) {
    if (bins_.first(units) == nullptr) return false;
    for (const Block* b = bins_.first(units); b != nullptr; b = b->right) {
      if (!b->small || UnitBins::UnitsOf(b) != units) return false;
      ++runs;
    }
  }
  uint64_t unmapped = 0, leaving = 0, holes = 0;
  for (const Block* b = leaving_.head; b != nullptr; b = b->right) ++leaving;
  for (const Block* b = first_; b != nullptr; b = b->next) {
    if (b->state == Block::State::kLeaving) --leaving;
    if (b->state != Block::State::kFree) continue;
    if (b->mapped && b->small) --runs;
    if (!b->mapped) ++unmapped;
    if (IsHole(b)) ++holes;
  }
  return runs == 0 && leaving == 0 && holes_.Validate(holes) && runs_.Validate(unmapped);
}

bool ArenaAllocator::Validate(const HeldPlaces* places) const {
  std::unique_ptr<uint32_t[]> live(new (std::nothrow) uint32_t[table_->size()]());
  if (live == nullptr) return true;  // no memory to walk with says nothing about the arena
  Bytes end = 0, requested = 0, allocated = 0, rounding = 0;
  uint64_t buffers = 0, cached = 0;
  uint32_t bound = 0;
  int held = 0;
  const auto count = [&](const Block* block) {
    requested += block->requested;
    allocated += block->size;
    if (block->charged) rounding += RoundUp(block->size, kChunkBytes) - block->size;
    ++buffers;
  };
  while (const Block* block = places == nullptr ? nullptr : places->Next(&bound)) {
    const Block* around = BlockAt(block->offset);
    if (around->state != Block::State::kHeld || around->end() < block->end()) return false;
    if (block->state != Block::State::kLive || block->offset < end) return false;
    if (places->Find(block->offset - held_begin_) != block) return false;
    end = block->end();
    const ChunkIndex last = LastChunkOf(block->offset, block->size);
    for (ChunkIndex chunk = ChunkOf(block->offset); chunk <= last && held_counted_; ++chunk) {
      ++live[chunk];
    }
    count(block);
    ++held;
  }
  if (held != held_blocks_) return false;
  for (const Block* block = first_; block != nullptr; block = block->next) {
    if (!ValidateBlock(block)) return false;
    end = block->end();
    if (block->state == Block::State::kFree || block->state == Block::State::kLeaving) continue;
    if (block->state == Block::State::kHeld) {
      if (places == nullptr) return false;
      continue;
    }
    const ChunkIndex last = LastChunkOf(block->offset, block->size);
    for (ChunkIndex chunk = ChunkOf(block->offset); chunk <= last; ++chunk) ++live[chunk];
    if (block->state == Block::State::kCached) ++cached;
    if (block->state != Block::State::kLive) continue;
    if (block->slot != 0) return false;
    count(block);
  }
  if (end != Bytes{table_->size()} * kChunkBytes) return false;
  for (ChunkIndex chunk = 0; chunk < table_->size(); ++chunk) {
    if (live[chunk] != table_->counted(chunk)) return false;
  }
  return cached == cached_ + static_cast<uint64_t>(parked_count_) && requested == requested_ &&
         allocated == allocated_ && rounding == rounding_ && buffers == live_buffers_ &&
         ValidateIndexes() && table_->Validate();
}

}  // namespace tidemark::core
