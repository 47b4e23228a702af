// Implementation of core/arena.h. Threads: as the header says.

#include "core/arena.h"

#include <algorithm>

namespace tidemark::core {

bool Arena::Init(ChunkIndex chunks, const ArenaSeam& seam, const ArenaOptions& options) {
  seam_ = seam;
  options_ = options;
  return table_.Init(chunks) && allocator_.Init(&table_);
}

Block* Arena::Allocate(Bytes bytes, StreamId stream) {
  Request request{bytes, passed_, stream, false};
  Block* block = Place(request);
  if (block == nullptr) block = AllocateSlow(request);
  return block;
}

Block* Arena::AllocateSlow(Request request) {
  Block* block = Extend(request.bytes, false) ? Place(request) : nullptr;
  if (block == nullptr && Settle()) {
    request.passed = passed_;
    block = Place(request);
    if (block == nullptr && Extend(request.bytes, true)) block = Place(request);
  }
  request.anywhere = true;
  return block != nullptr ? block : Place(request);
}

void Arena::Free(Block* block, StreamId stream, FenceId fence) {
  if (fence > newest_) newest_ = fence;
  allocator_.Free(block, fence, stream);
}

Block* Arena::Place(const Request& request) {
  Block* block = allocator_.Allocate(request);
  if (block == nullptr || !ArenaAllocator::MustWait(block, request.stream, passed_)) return block;
  ++counters_.ordered_fences;
  if (seam_.order(seam_.owner, request.stream, block->fence)) {
    block->stream = request.stream;  // what it frees may be used by itself without another wait
    return block;
  }
  allocator_.Free(block, 0);
  return nullptr;
}

// Within the slack new chunks come first, beyond it free chunks from elsewhere do.
bool Arena::Extend(Bytes bytes, bool settled) {
  Extension extension;
  if (!allocator_.PlanExtension(bytes, &extension)) return false;
  const Bytes demand = std::max(allocator_.peak_requested(), allocator_.requested() + bytes);
  const ChunkIndex slots = SlotsFor(demand);
  ChunkIndex fresh = seam_.available(seam_.owner);
  const ChunkIndex within = slots > mapped() ? slots - mapped() : 0;
  ChunkIndex wanted = extension.missing;
  wanted -= wanted < within ? wanted : within;
  if (fresh < extension.missing && extension.missing - fresh > wanted) {
    wanted = extension.missing - fresh;
  }
  const ChunkIndex moved = wanted == 0 ? 0 : Stitch(wanted, extension);
  fresh += moved;
  // What cannot be had without waiting is not worth trying before the wait.
  if (fresh < extension.missing && !settled) return false;
  return MapExtension(extension);
}

ChunkIndex Arena::Stitch(ChunkIndex count, const Extension& keep) {
  ChunkIndex moved = 0;
  ChunkIndex below = table_.high_water();
  Range range;
  while (moved < count && NextFree(below, count - moved, &keep, &range)) {
    below = range.first;
    if (UnmapRange(range)) moved += range.count;
  }
  counters_.stitched += moved;
  if (moved > counters_.largest_stitch) counters_.largest_stitch = moved;
  return moved;
}

// The highest run of at most `most` wholly free chunks below `below` whose fence has passed,
// outside `keep`.
bool Arena::NextFree(ChunkIndex below, ChunkIndex most, const Extension* keep, Range* range) const {
  if (below == 0) return false;
  const Block* block = allocator_.BlockAt(Bytes{below} * kChunkBytes - 1);
  for (; block != nullptr; block = block->previous) {
    if (block->state != Block::State::kFree || !block->mapped || block->small) continue;
    if (block->fence > passed_) continue;
    auto first = static_cast<ChunkIndex>(RoundUp(block->offset, kChunkBytes) / kChunkBytes);
    ChunkIndex end = std::min(below, static_cast<ChunkIndex>(block->end() / kChunkBytes));
    if (keep != nullptr) {
      const ChunkIndex keep_end = keep->first + keep->count;
      if (end > keep->first && end <= keep_end) end = keep->first;
      if (first < keep_end && keep_end < end) first = keep_end;
    }
    if (first >= end) continue;
    const ChunkIndex count = std::min(most, end - first);
    *range = {end - count, count};
    return true;
  }
  return false;
}

// All of the extension or, of what was unmapped before, nothing.
bool Arena::MapExtension(const Extension& extension) {
  const ChunkIndex end = extension.first + extension.count;
  ChunkIndex chunk = extension.first;
  while (chunk < end) {
    Range range = {chunk, 0};
    while (chunk < end && table_.state(chunk) == ChunkState::kUnmapped) ++chunk, ++range.count;
    if (range.count == 0) {
      ++chunk;
    } else if (!MapRange(range)) {
      UndoMaps();
      return false;
    }
  }
  undo_.Clear();
  return true;
}

bool Arena::MapRange(Range range) {
  if (!undo_.Reserve(undo_.size() + 1) || !allocator_.ReserveMark()) return false;
  if (!seam_.map(seam_.owner, range.first, range.count)) return false;
  allocator_.MarkMapped(range.first, range.count);
  for (ChunkIndex i = range.first; i < range.first + range.count; ++i) {
    table_.SetState(i, ChunkState::kDevice);
  }
  (void)undo_.Append(range);
  counters_.mapped += range.count;
  return true;
}

// A range that cannot be taken back stays mapped and free: a hole for the next request.
void Arena::UndoMaps() {
  for (size_t i = undo_.size(); i-- > 0;) {
    if (UnmapRange(undo_[i])) counters_.undone += undo_[i].count;
  }
  undo_.Clear();
}

bool Arena::UnmapRange(Range range) {
  if (!allocator_.ReserveMark()) return false;
  if (!seam_.unmap(seam_.owner, range.first, range.count)) return false;
  allocator_.MarkUnmapped(range.first, range.count);
  for (ChunkIndex i = range.first; i < range.first + range.count; ++i) {
    table_.SetState(i, ChunkState::kUnmapped);
  }
  counters_.unmapped += range.count;
  return true;
}

ChunkIndex Arena::Release(ChunkIndex count) {
  allocator_.FoldCache();
  ChunkIndex released = 0;
  ChunkIndex below = table_.high_water();
  Range range;
  while (released < count && NextFree(below, count - released, nullptr, &range)) {
    below = range.first;
    if (UnmapRange(range)) released += range.count;
  }
  return released;
}

bool Arena::Settle() {
  if (newest_ <= passed_) return false;
  ++counters_.settled_fences;
  const FenceId before = passed_;
  Passed(seam_.settle(seam_.owner, newest_));
  return passed_ > before;
}

ChunkIndex Arena::Decay() {
  const ChunkIndex needed = SlotsFor(allocator_.TakeIntervalPeak());
  return mapped() <= needed ? 0 : Release((mapped() - needed + 1) / 2);
}

// Chunks that `demand` may occupy within the slack.
ChunkIndex Arena::SlotsFor(Bytes demand) const {
  const Bytes allowed = demand + demand / 1000 * options_.slack_permille;
  return static_cast<ChunkIndex>(
      std::max(allowed / kChunkBytes, RoundUp(demand, kChunkBytes) / kChunkBytes));
}

void Arena::Pin(Block* block, PinReason reason) {
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = ChunkOf(block->offset); i <= last; ++i) table_.Pin(i, reason);
}

}  // namespace tidemark::core
