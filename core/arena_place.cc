// Where a request goes: the part of core/arena_allocator.h that chooses among free blocks, and the
// indexes it chooses from. A choice that need not wait for a fence comes before one that must, if
// one is found within a few looks. Threads: as the header says.

#include <algorithm>
#include <new>

#include "core/arena_allocator.h"
#include "core/slab_map.h"

namespace tidemark::core {
namespace {

constexpr int kFenceSearch = 8;  // further holes looked at to avoid waiting for a fence
constexpr int kHoleSearch = 4;   // holes among which the shortest is sought
constexpr Bytes kTightBelow = 16 * kMiB;
constexpr int kSlabSearch = 8;      // runs of one length among which the fullest slab is sought
constexpr Bytes kAllowance = 4096;  // rounding to chunks may cost one part in so many of the demand

}  // namespace

Bytes ArenaAllocator::AlignmentFor(Bytes size, Bytes requested) const {
  if (size <= kSmallLimit) return kBlockBytes;
  const Bytes rounding = RoundUp(size, kChunkBytes) - size;
  const Bytes demand = std::max(peak_requested_, requested_ + requested);
  return rounding == 0 || rounding_ + rounding <= demand / kAllowance ? kChunkBytes : kBlockBytes;
}

// What the cache holds back comes before a new slab.
Block* ArenaAllocator::FromSlabs(Bytes size, StreamId stream) {
  Block* block = FromBins(size, stream);
  if (block == nullptr && (cached_ != 0 || parked_count_ != 0)) {
    FoldCache();
    block = FromBins(size, stream);
  }
  return block != nullptr || !AddSlab(stream) ? block : FromBins(size, stream);
}

// The shortest run that fits and need not wait, else the shortest that fits.
Block* ArenaAllocator::FromBins(Bytes size, StreamId stream) {
  Block* found = nullptr;
  uint32_t units = bins_.AtLeast(static_cast<uint32_t>(size / kBlockBytes));
  for (int looked = 0; units != UnitBins::kNone && looked < kFenceSearch; ++looked) {
    Block* block = Fullest(units, stream);
    if (found == nullptr) found = block;
    if (!Waits(block, stream)) {
      found = block;
      break;
    }
    units = bins_.AtLeast(units + 1);
  }
  if (found == nullptr) return nullptr;
  RemoveFromIndex(found);
  return Carve(found, found->offset, size);
}

// Of the runs of `units`: one that need not wait, in the slab with the most buffers, so that the
// others empty.
Block* ArenaAllocator::Fullest(uint32_t units, StreamId stream) const {
  Block* best = bins_.first(units);
  int looked = 0;
  for (Block* b = best->right; b != nullptr && ++looked < kSlabSearch; b = b->right) {
    const bool waits = Waits(b, stream);
    const bool best_waits = Waits(best, stream);
    if (waits != best_waits
            ? best_waits
            : table_->live(ChunkOf(b->offset)) > table_->live(ChunkOf(best->offset))) {
      best = b;
    }
  }
  return best;
}

// Not having to wait comes first, then the shorter one, then the one found first.
bool ArenaAllocator::Better(const Block* block, const Block* found, StreamId stream) const {
  const bool waits = Waits(block, stream);
  return waits != Waits(found, stream) ? !waits : block->size < found->size;
}

// Large requests take the lowest address; others the shortest of the lowest few holes that fit.
Block* ArenaAllocator::FromHoles(Bytes size, Bytes alignment, StreamId stream) {
  const SlotIndex::Value least = ValueOf(size);
  int left = size < kTightBelow ? kHoleSearch : 1;
  int waiting = 0;
  Block* found = nullptr;
  for (uint32_t chunk = holes_.Find(0, least); chunk != SlotIndex::kNone && left > 0;
       chunk = holes_.Find(chunk + 1, least)) {
    Block* block = starts_[chunk].first;
    for (; block != nullptr && ChunkOf(block->offset) == chunk && left > 0; block = block->next) {
      if (!IsHole(block) || RoundUp(block->offset, alignment) + size > block->end()) continue;
      const bool waits = Waits(block, stream);
      if (waits && ++waiting > kFenceSearch && found != nullptr) left = 0;
      if (!waits) --left;
      if (found == nullptr || Better(block, found, stream)) found = block;
      if (found->size == size && !waits) left = 0;  // none is shorter
    }
  }
  if (found == nullptr) return nullptr;
  const Bytes offset = RoundUp(found->offset, alignment);
  if (offset == found->offset) return TakeFront(found, size);
  RemoveFromIndex(found);
  return Carve(found, offset, size);
}

// The lower part of a hole; the rest stays one.
Block* ArenaAllocator::TakeFront(Block* hole, Bytes size) {
  const ChunkIndex chunk = ChunkOf(hole->offset);
  const bool indexed = ValueOf(hole->size) == holes_.value(chunk);
  Block* rest = hole->size == size ? nullptr : SplitAt(hole, hole->offset + size);
  if (rest == nullptr || ChunkOf(rest->offset) == chunk) {
    if (indexed) holes_.Set(chunk, LargestHole(chunk, hole));
    return hole;
  }
  const ChunkIndex other = ChunkOf(rest->offset);
  const SlotIndex::Value value = indexed ? LargestHole(chunk, hole) : holes_.value(chunk);
  holes_.SetBoth(chunk, value, other, std::max(holes_.value(other), ValueOf(rest->size)));
  return hole;
}

// The shortest hole of any kind. Linear: the alternative is to fail.
Block* ArenaAllocator::FromAnywhere(Bytes size, StreamId stream) {
  Block* found = nullptr;
  for (Block* b = first_; b != nullptr; b = b->next) {
    if (b->state != Block::State::kFree || !b->mapped || b->size < size) continue;
    if (b->small && size > kSmallLimit) continue;
    if (found != nullptr && Waits(b, stream) && !Waits(found, stream)) continue;
    if (found == nullptr || b->size < found->size || (Waits(found, stream) && !Waits(b, stream))) {
      found = b;
    }
  }
  if (found == nullptr) return nullptr;
  RemoveFromIndex(found);
  return Carve(found, found->offset, size);
}

bool ArenaAllocator::AddSlab(StreamId stream) {
  SlabMap* map = new (std::nothrow) SlabMap;
  if (map == nullptr) return false;
  Block* block = FromHoles(kChunkBytes, kChunkBytes, stream);
  if (block == nullptr) {
    delete map;
    return false;
  }
  starts_[ChunkOf(block->offset)].slab = map;
  block->small = true;
  ++slabs_;
  NoteStart(block);
  AddToIndex(block);
  return true;
}

void ArenaAllocator::AddToIndex(Block* block) {
  if (!block->mapped) {
    unmapped_.Append(block);
  } else if (block->small) {
    bins_.Add(block);
  } else {
    const ChunkIndex chunk = ChunkOf(block->offset);
    const SlotIndex::Value value = ValueOf(block->size);
    if (value > holes_.value(chunk)) holes_.Set(chunk, value);
  }
}

void ArenaAllocator::RemoveFromIndex(Block* block) {
  if (!block->mapped) {
    unmapped_.Remove(block);
  } else if (block->small) {
    bins_.Remove(block);
  } else {
    const ChunkIndex chunk = ChunkOf(block->offset);
    if (ValueOf(block->size) < holes_.value(chunk)) return;
    holes_.Set(chunk, LargestHole(chunk, block));
  }
}

// Of the holes that start in `chunk`, not counting `but`.
SlotIndex::Value ArenaAllocator::LargestHole(ChunkIndex chunk, const Block* but) const {
  SlotIndex::Value largest = 0;
  const Bytes end = Bytes{chunk + 1} * kChunkBytes;
  const Block* block = starts_[chunk].first;
  for (; block != nullptr && block->offset < end; block = block->next) {
    if (block != but && IsHole(block)) largest = std::max(largest, ValueOf(block->size));
  }
  return largest;
}

}  // namespace tidemark::core
