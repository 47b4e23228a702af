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
// The same next to what is kept free: few requests are not placed by the plan, and those recur.
constexpr int kHoleSearchOfFew = 256;
constexpr Bytes kTightBelow = 16 * kMiB;
constexpr int kSlabSearch = 8;  // runs of one length among which the fullest slab is sought
// Rounding to chunks may cost one part in so many of the demand, and gaps before whole chunks so
// much, or a chunk. With 1/1024, recorded trainings held more in the order of streams.
constexpr Bytes kAllowance = 4096;
constexpr Bytes kAllowedGaps = 512;

// `alignment` is a power of two.
Bytes Aligned(Bytes offset, Bytes alignment) { return (offset + alignment - 1) & ~(alignment - 1); }

}  // namespace

Bytes ArenaAllocator::AlignmentFor(Bytes size, Bytes requested) const {
  if (size <= kSmallLimit) return kBlockBytes;
  const Bytes rounding = RoundUp(size, kChunkBytes) - size;
  const Bytes demand = std::max(peak_requested_, requested_ + requested);
  const bool aligned = rounding != 0 ? rounding_ + rounding <= demand / kAllowance
                                     : gaps_ <= std::max(kChunkBytes, demand / kAllowedGaps) ||
                                           !lasting_.MayLast(size);
  return aligned ? kChunkBytes : kBlockBytes;
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
// others empty. What a plan holds never lies in a slab, so nothing is left to be counted there.
Block* ArenaAllocator::Fullest(uint32_t units, StreamId stream) const {
  Block* best = bins_.first(units);
  int looked = 0;
  for (Block* b = best->right; b != nullptr && ++looked < kSlabSearch; b = b->right) {
    const bool waits = Waits(b, stream);
    const bool best_waits = Waits(best, stream);
    if (waits != best_waits
            ? best_waits
            : table_->counted(ChunkOf(b->offset)) > table_->counted(ChunkOf(best->offset))) {
      best = b;
    }
  }
  return best;
}

// Where in a hole a request goes, if it fits there: below or above what is kept free.
Bytes ArenaAllocator::OffsetIn(const Block* hole, Bytes size, Bytes alignment) const {
  const Bytes offset = Aligned(hole->offset, alignment);
  if (!InKept(offset, size)) return offset;
  return Aligned(Bytes{kept_first_ + kept_count_} * kChunkBytes, alignment);
}

// Large requests take the lowest address; others the shortest of the lowest few holes that fit.
Block* ArenaAllocator::FromHoles(Bytes size, Bytes alignment, StreamId stream) {
  int left = size < kTightBelow ? kHoleSearch : 1;
  if (kept_count_ != 0) left = kHoleSearchOfFew;
  int waiting = 0;
  Block* found = nullptr;
  bool found_waits = false;
  Bytes found_offset = 0;
  HoleIndex::Search search(&holes_, size);
  HoleIndex::Place place;
  while (left > 0) {
    Block* block = search.Next();
    if (block == nullptr) break;
    const Bytes offset = OffsetIn(block, size, alignment);
    if (offset + size > block->end()) continue;
    const bool waits = Waits(block, stream);
    if (waits && ++waiting > kFenceSearch && found != nullptr) left = 0;
    if (!waits) --left;
    // Not having to wait comes first, then the shorter one, then the one found first.
    if (found == nullptr || (waits != found_waits ? found_waits : block->size < found->size)) {
      found = block;
      found_waits = waits;
      found_offset = offset;
      place = search.place();
    }
    if (found->size == size && !waits) left = 0;  // none is shorter
  }
  return found == nullptr ? nullptr : TakeAt(place, found, found_offset, size);
}

// Part of the hole at `place`; what is left over on both sides stays in the index.
Block* ArenaAllocator::TakeAt(HoleIndex::Place place, Block* hole, Bytes offset, Bytes size) {
  runs_.Changed(hole);
  Block* taken = offset == hole->offset ? hole : SplitAt(hole, offset);
  Block* rest = taken->size == size ? nullptr : SplitAt(taken, offset + size);
  if (taken != hole) {
    holes_.Replace(place, hole);
    if (rest != nullptr) holes_.Add(rest);
  } else if (rest != nullptr) {
    holes_.Replace(place, rest);
  } else {
    holes_.RemoveAt(place);
  }
  return taken;
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
  if (spare_slab_ == nullptr) spare_slab_ = new (std::nothrow) SlabMap;
  if (spare_slab_ == nullptr) return false;
  Block* block = FromHoles(kChunkBytes, kChunkBytes, stream);
  if (block == nullptr) return false;
  spare_slab_->Clear();
  starts_[ChunkOf(block->offset)].slab = spare_slab_;
  spare_slab_ = nullptr;
  block->small = true;
  ++slabs_;
  NoteStart(block);
  AddToIndex(block);
  return true;
}

void ArenaAllocator::AddToIndex(Block* block) {
  if (!block->mapped) {
    runs_.Add(block);
  } else if (block->small) {
    bins_.Add(block);
  } else {
    holes_.Add(block);
    runs_.Changed(block);
  }
}

void ArenaAllocator::RemoveFromIndex(Block* block) {
  if (!block->mapped) {
    runs_.Remove(block);
  } else if (block->small) {
    bins_.Remove(block);
  } else {
    holes_.Remove(block);
    runs_.Changed(block);
  }
}

}  // namespace tidemark::core
