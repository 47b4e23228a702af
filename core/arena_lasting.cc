// Where requests that will last (lasting.h) go: close to one another where whole chunks are free,
// or in new chunks while a little is still to be had, rather than into what is left over between
// buffers that will be gone. Threads: as the headers say.

#include <algorithm>

#include "core/arena.h"

namespace tidemark::core {
namespace {

constexpr int kHolesLookedAt = 256;
// New chunks are taken for it up to so many times the slack: beyond that, narrow holes are filled.
constexpr uint32_t kSlacks = 2;

}  // namespace

Block* ArenaAllocator::AllocateLasting(const Request& request) {
  if (request.passed > passed_) passed_ = request.passed;
  const Bytes size = RoundUp(request.bytes, kBlockBytes);
  if (!ReserveMark()) return nullptr;
  FoldParked();
  const Bytes alignment = AlignmentFor(size, request.bytes);
  HoleIndex::Place place;
  Block* hole = HoleForLasting(size, alignment, request.stream, &place);
  if (hole == nullptr) return nullptr;
  Block* block = TakeAt(place, hole, OffsetIn(hole, size, alignment), size);
  table_->AddLive(ChunkOf(block->offset), LastChunkOf(block->offset, block->size));
  MakeLive(block, request);
  lasting_.Made(size);
  after_lasting_ = block->end();
  return block;
}

// Right behind the last one, else at the beginning of the lowest hole with a whole chunk.
Block* ArenaAllocator::HoleForLasting(Bytes size, Bytes alignment, StreamId stream,
                                      HoleIndex::Place* place) {
  const auto fits = [&](const Block* hole) {
    return OffsetIn(hole, size, alignment) + size <= hole->end() && !Waits(hole, stream);
  };
  Block* behind = after_lasting_ == 0 ? nullptr : BlockAt(after_lasting_);
  if (behind != nullptr && behind->offset == after_lasting_ && IsHole(behind) && fits(behind)) {
    *place = holes_.Locate(behind->offset);
    return behind;
  }
  HoleIndex::Search search(&holes_, size);
  for (int looked = 0; looked < kHolesLookedAt; ++looked) {
    Block* hole = search.Next();
    if (hole == nullptr) return nullptr;
    if (hole->WholeChunks() == 0 || !fits(hole)) continue;
    *place = search.place();
    return hole;
  }
  return nullptr;
}

// Null: it goes where others go. So it is beside a plan, where live chunks have to leave, and while
// chunks are free behind fences, for new ones would be taken in their place.
Block* Arena::PlaceLasting(const Request& request) {
  if (held_ || allocator_.kept_count() != 0 || Evicts() || allocator_.ChunksWait()) return nullptr;
  Block* block = allocator_.AllocateLasting(request);
  if (block != nullptr || !TakeChunksForLasting(request.bytes)) return block;
  return allocator_.AllocateLasting(request);
}

bool Arena::TakeChunksForLasting(Bytes bytes) {
  LeaveOldPlaces();
  Extension extension;
  if (!allocator_.PlanExtension(bytes, &extension)) return false;
  const ChunkIndex slots = SlotsWithin(DemandWith(bytes), kSlacks);
  if (mapped() + extension.missing > slots) return false;
  if (seam_.acquire != nullptr && Available() < extension.missing) {
    seam_.acquire(seam_.owner, extension.missing);
    if (held_) PutBack();  // others may have called meanwhile
    if (!allocator_.PlanExtension(bytes, &extension)) return false;
  }
  return extension.missing <= Available() && MapExtension(extension, extension.missing);
}

}  // namespace tidemark::core
