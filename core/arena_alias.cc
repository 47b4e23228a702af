// How chunks move while work in flight may still use them: the part of core/arena.h that maps what
// is free behind a fence under a new range at once, and takes the old mapping away when the fence
// has passed. Nobody waits on the host: whoever gets the new range is ordered after the fence on
// the device, as with any hole behind one. CUDA defines what that gives: two mappings of one
// allocation are coherent between kernels that streams or events order (CUDA programming guide,
// "Virtual Aliasing Support").
//
// Without it a job whose host runs ahead of the device, as in any training, takes new chunks while
// enough are free: 1.42 of its peak for sharded weights, in place of 1.01 (docs/scoreboard.md, "in
// flight"). Threads: as the header says.

#include <algorithm>
#include <utility>

#include "core/arena.h"

namespace tidemark::core {
namespace {

// What is mapped may exceed the slack by so many chunks, or one part in so many of the demand,
// before chunks behind fences are moved. With neither, every trace holds within 0.4 % and most move
// chunks in every step; with these, those of fixed shapes move none.
constexpr ChunkIndex kChunksBeyond = 16;
constexpr ChunkIndex kPartBeyond = 200;

}  // namespace

// Whether chunks behind fences are moved before the owner acquires `more`.
bool Arena::RatherAliases(ChunkIndex more, Bytes bytes, Beyond beyond) const {
  if (seam_.alias == nullptr) return false;
  const ChunkIndex slots = SlotsFor(DemandWith(bytes));
  const ChunkIndex little = std::max(kChunksBeyond, slots / kPartBeyond);
  return mapped() + more > slots + (beyond == Beyond::kNothing ? 0 : little);
}

// Brings `count` wholly free chunks from elsewhere under unmapped slots of `to`, or none: a few of
// them would be moved for nothing. Returns how many; fewer when the owner fails. What a plan keeps
// free comes last.
ChunkIndex Arena::Alias(ChunkIndex count, const Extension& to) {
  if (seam_.alias == nullptr) return 0;
  Search search = {ChunkState::kDevice, {to.first, to.count}, true, true};
  if (CountFree(count, search) < count) return 0;
  search.kept_free = false;
  ChunkIndex aliased = 0;
  Range room = {to.first, 0};
  while (aliased < count) {
    room = UnmappedIn(to, room.first, count - aliased);
    Range from;
    if (!NextFree(table_.high_water(), room.count, search, &from)) {
      if (std::exchange(search.kept_free, true)) break;
    } else if (AliasRange(from, room.first)) {
      aliased += from.count;
    } else {
      break;
    }
  }
  counters_.aliased += aliased;
  NoteMoved(aliased);
  return aliased;
}

// The lowest run of at most `most` unmapped slots of `within` from `first` on.
Arena::Range Arena::UnmappedIn(const Extension& within, ChunkIndex first, ChunkIndex most) const {
  const ChunkIndex end = within.first + within.count;
  while (first < end && table_.state(first) != ChunkState::kUnmapped) ++first;
  ChunkIndex last = first;
  while (last < end && last - first < most && table_.state(last) == ChunkState::kUnmapped) ++last;
  return {first, last - first};
}

// As far as `most` matter.
ChunkIndex Arena::CountFree(ChunkIndex most, const Search& search) const {
  ChunkIndex free = 0;
  ChunkIndex below = table_.high_water();
  Range range;
  while (free < most && NextFree(below, most - free, search, &range)) {
    free += range.count;
    below = range.first;
  }
  return free;
}

bool Arena::AliasRange(Range from, ChunkIndex to) {
  if (!allocator_.ReserveMark()) return false;
  if (!seam_.alias(seam_.owner, from.first, to, from.count)) return false;
  allocator_.MarkAliased(from.first, to, from.count);
  for (ChunkIndex i = 0; i < from.count; ++i) {
    table_.SetState(from.first + i, ChunkState::kUnmapped);
    table_.SetState(to + i, ChunkState::kDevice);
  }
  counters_.mapped += from.count;
  return true;
}

void Arena::LeaveOldPlaces() {
  for (Block* block = allocator_.leaving(); block != nullptr;) {
    Block* next = block->right;
    const ChunkIndex first = ChunkOf(block->offset);
    const ChunkIndex count = block->WholeChunks();
    if (block->fence <= passed_ && seam_.leave(seam_.owner, first, count)) {
      allocator_.MarkLeft(block);
      counters_.unmapped += count;
    }
    block = next;
  }
}

}  // namespace tidemark::core
