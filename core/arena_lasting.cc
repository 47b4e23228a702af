// Where requests that will last (lasting.h) go: close to one another, one right behind the other,
// in chunks that are free elsewhere or in a few new ones, rather than into what is left over
// between buffers that will be gone. Threads: as the headers say.

#include <algorithm>

#include "core/arena.h"

namespace tidemark::core {
namespace {

// New chunks are taken for it up to so many times the slack: beyond that, holes are filled.
constexpr uint32_t kSlacks = 2;
// A job, or one of several in a process, has ended where less than one part in so many of its peak
// is left, and another one has begun with twice as much.
constexpr Bytes kLeft = 16;

}  // namespace

// Right behind the last one, else above everything, where what lasts comes to lie alone.
Bytes ArenaAllocator::PlaceForLasting(Bytes bytes) {
  FoldParked();
  const Bytes above = Bytes{table_->high_water()} * kChunkBytes;
  if (after_lasting_ == 0) return above;
  const Bytes needed = after_lasting_ + RoundUp(bytes, kBlockBytes);
  Bytes end = after_lasting_;
  for (const Block* b = BlockAt(end); IsFreeForAll(b) && end < needed; b = b->next) end = b->end();
  return end >= needed ? after_lasting_ : above;
}

// What lasts in the next run goes where it went in the first one: chunks lie there.
void ArenaAllocator::NoteRun() {
  const Bytes little = peak_requested_ / kLeft;
  if (requested_ >= 2 * little) {
    in_run_ = true;
  } else if (in_run_ && requested_ < little) {
    in_run_ = false;
    lasting_.End();
    gaps_ = 0;
    after_lasting_ = first_lasting_;
  }
}

// Null: it goes where others go. So it is beside a plan, where live chunks have to leave, and where
// too few chunks are free or to be had.
Block* Arena::PlaceLasting(const Request& request) {
  if (held_ || allocator_.kept_count() != 0 || Evicts()) return nullptr;
  if (allocator_.ChunksWait() && seam_.alias == nullptr) return nullptr;
  LeaveOldPlaces();
  const Bytes place = allocator_.PlaceForLasting(request.bytes);
  if (!HasChunksForLasting(request.bytes, place)) return nullptr;
  // Once for what lasts, chunks behind fences are moved first, unless most of them are the stream's
  // own and can be had where they are.
  const bool moves = request.stream == kAnyStream;
  Block* block = PlaceAt(request, place, moves ? Beyond::kNothing : Beyond::kALittle);
  if (block != nullptr) allocator_.TookForLasting(block);
  return block;
}

bool Arena::HasChunksForLasting(Bytes bytes, Bytes place) {
  Extension extension;
  if (!allocator_.PlanExtensionAt(bytes, place, &extension)) return true;  // all of it is mapped
  const ChunkIndex fresh = std::min({Within(bytes, kSlacks), Available(), extension.missing});
  const ChunkIndex lacking = extension.missing - fresh;
  const bool aliases = seam_.alias != nullptr;
  return CountFree(lacking,
                   {ChunkState::kDevice, {extension.first, extension.count}, true, aliases}) >=
         lacking;
}

}  // namespace tidemark::core
