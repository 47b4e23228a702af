// Implementation of core/arena.h. Threads: as the header says.

#include "core/arena.h"

#include <algorithm>

namespace tidemark::core {

// Leaves the highest part of [first, end) that lies outside `hole`.
void Arena::CutOut(Range hole, ChunkIndex* first, ChunkIndex* end) {
  const ChunkIndex hole_end = hole.first + hole.count;
  if (*end > hole.first && *end <= hole_end) *end = hole.first;
  if (*first < hole_end && hole_end < *end) *first = hole_end;
}

bool Arena::Init(ChunkIndex chunks, const ArenaSeam& seam, const ArenaOptions& options) {
  seam_ = seam;
  options_ = options;
  return table_.Init(chunks) && allocator_.Init(&table_);
}

Block* Arena::AllocateSlow(Request request) {
  if (PlanKeepsFrom(request.bytes)) {
    if (held_) PutBack();
    plan_.Refuse();
    KeepForPlan();
    if (Block* block = Place(request)) return block;
  }
  Block* block = Extend(request.bytes, kAnyOffset, false) ? Place(request) : nullptr;
  if (block == nullptr) {
    const bool settled = Settle();
    request.passed = passed_;
    if (settled) block = Place(request);
    const bool more = settled || seam_.evict != nullptr || seam_.map_host != nullptr;
    if (block == nullptr && more && Extend(request.bytes, kAnyOffset, true)) block = Place(request);
  }
  if (block == nullptr && plan_.following()) {
    plan_.Suspend();
    KeepForPlan();
    return AllocateAnywhere(request);
  }
  request.anywhere = true;
  return block != nullptr ? block : Place(request);
}

bool Arena::Order(Block* block, StreamId stream) {
  ++counters_.ordered_fences;
  if (seam_.order(seam_.owner, stream, block->fence)) {
    block->stream = stream;  // what it frees may be used by itself without another wait
    return true;
  }
  Drop(block, 0, kAnyStream);
  return false;
}

bool Arena::Extend(Bytes bytes, Bytes at, bool settled, Beyond beyond) {
  Extension extension;
  if (held_) {
    if (at != kAnyOffset && !PlanExtension(bytes, at, &extension)) return false;
    PutBack();
  }
  LeaveOldPlaces();
  if (!PlanExtension(bytes, at, &extension)) return false;
  const bool acquires = seam_.acquire != nullptr;
  const bool planned = at != kAnyOffset && plan_.following();
  const ChunkIndex within = Within(bytes, planned ? plan_.slacks() : 1);
  const ChunkIndex wanted = acquires && !settled ? Wanted(extension, bytes, within, beyond) : 0;
  if (wanted != 0) {
    seam_.acquire(seam_.owner, Available() + wanted);
    if (held_) PutBack();  // others may have called meanwhile
    if (!PlanExtension(bytes, at, &extension)) return false;
  }
  ChunkIndex missing = extension.missing;
  ChunkIndex fresh = Available();
  const ChunkIndex first = acquires ? fresh : within;
  ChunkIndex moved = missing - std::min(missing, first);
  if (fresh < missing && missing - fresh > moved) moved = missing - fresh;
  if (moved != 0 && Stitch(moved, extension) != 0) fresh = Available();
  if (fresh < missing) missing -= Alias(missing - fresh, extension);
  // What cannot be had without waiting is not worth trying before the wait.
  if (fresh < missing && !settled) return false;
  if (fresh < missing && seam_.evict != nullptr) {
    Evict(missing);
    fresh = Available();
  }
  return MapExtension(extension, seam_.map_host == nullptr ? missing : std::min(fresh, missing));
}

bool Arena::PlanExtension(Bytes bytes, Bytes at, Extension* extension) {
  return at == kAnyOffset ? allocator_.PlanExtension(bytes, extension)
                          : allocator_.PlanExtensionAt(bytes, at, extension);
}

// Chunks that the owner is to acquire for `extension`: what lies within the slack, `within`, and
// beyond it what free chunks from elsewhere cannot give.
ChunkIndex Arena::Wanted(const Extension& extension, Bytes bytes, ChunkIndex within,
                         Beyond beyond) const {
  const ChunkIndex spare = Available();
  if (extension.missing <= spare) return 0;
  const ChunkIndex lacking = extension.missing - spare;
  const ChunkIndex most = lacking - std::min(lacking, within > spare ? within - spare : 0);
  Search search = {ChunkState::kDevice, {extension.first, extension.count}, true, false};
  const ChunkIndex wanted = lacking - CountFree(most, search);
  if (!RatherAliases(spare + wanted, bytes, beyond)) return wanted;
  search.waiting = true;
  return lacking - CountFree(most, search);
}

// Chunks that may still be mapped within so many times the slack when `bytes` more are live.
ChunkIndex Arena::Within(Bytes bytes, uint32_t slacks) const {
  const ChunkIndex slots = SlotsWithin(DemandWith(bytes), slacks);
  return slots > mapped() ? slots - mapped() : 0;
}

// Chunks that may be mapped for `bytes` more without moving any. An owner that acquires has what it
// holds already, and may get more.
ChunkIndex Arena::FreshFor(Bytes bytes) const {
  const ChunkIndex within = Within(bytes);
  return seam_.acquire != nullptr ? std::max(within, Available()) : std::min(within, Available());
}

// What a plan keeps free comes last.
ChunkIndex Arena::Stitch(ChunkIndex count, const Extension& keep) {
  Search search = {ChunkState::kDevice, {keep.first, keep.count}, false, false};
  ChunkIndex moved = UnmapFree(count, search);
  search.kept_free = true;
  if (moved < count && allocator_.kept_count() != 0) moved += UnmapFree(count - moved, search);
  NoteMoved(moved);
  return moved;
}

void Arena::NoteMoved(ChunkIndex chunks) {
  counters_.stitched += chunks;
  if (chunks > counters_.largest_stitch) counters_.largest_stitch = chunks;
  if (chunks != 0 && (plan_.on() || plan_.Start())) plan_.NoteMoved(chunks);
}

// Again and again: an owner above its limits gives chunks back first, and may move only so many
// at once. It ends because every round leaves less to evict.
void Arena::Evict(ChunkIndex missing) {
  evicted_at_ = plan_.number();
  ChunkIndex fresh = Available();
  while (fresh < missing && seam_.evict(seam_.owner, missing - fresh) != 0) fresh = Available();
}

// The highest run of at most `most` wholly free chunks below `below` that may be moved.
bool Arena::NextFree(ChunkIndex below, ChunkIndex most, const Search& search, Range* range) const {
  if (below == 0) return false;
  const Range kept = {allocator_.kept_first(), allocator_.kept_count()};
  HoleIndex::SearchDown holes = allocator_.HolesBelow(Bytes{below} * kChunkBytes, kChunkBytes);
  while (const Block* block = holes.Next()) {
    if (block->fence > passed_ && !search.waiting) continue;
    Range found = {static_cast<ChunkIndex>(RoundUp(block->offset, kChunkBytes) / kChunkBytes), 0};
    ChunkIndex end = std::min(below, static_cast<ChunkIndex>(block->end() / kChunkBytes));
    CutOut(search.keep, &found.first, &end);
    if (!search.kept_free) {
      CutOut(kept, &found.first, &end);
      CutOut(search.keep, &found.first, &end);
    }
    if (found.first >= end) continue;
    const Range within = {found.first, end - found.first};
    if (HighestIn(search.state, within, most, range)) return true;
  }
  return false;
}

// The highest run of at most `most` slots of `within` that are in `state`.
bool Arena::HighestIn(ChunkState state, Range within, ChunkIndex most, Range* range) const {
  ChunkIndex end = within.first + within.count;
  ChunkIndex first = end - std::min(most, within.count);
  const bool device = state == ChunkState::kDevice;
  if ((device ? table_.host_chunks() : table_.device_chunks()) != 0) {
    while (end > within.first && table_.state(end - 1) != state) --end;
    first = end;
    while (first > within.first && end - first < most && table_.state(first - 1) == state) --first;
  }
  *range = {first, end - first};
  return first != end;
}

// All of the extension or, of what was unmapped before, nothing. The lowest `device` missing
// chunks come from the device, the others from the host.
bool Arena::MapExtension(const Extension& extension, ChunkIndex device) {
  Range range = {extension.first, 0};
  while (true) {
    const ChunkIndex most = device != 0 ? device : extension.count;
    range = UnmappedIn(extension, range.first + range.count, most);
    if (range.count == 0) break;
    if (!MapRange(range, device != 0 ? ChunkState::kDevice : ChunkState::kHost)) {
      UndoMaps();
      return false;
    }
    if (device != 0) device -= range.count;
  }
  undo_.Clear();
  return true;
}

bool Arena::MapRange(Range range, ChunkState state) {
  const bool host = state == ChunkState::kHost;
  if (!undo_.Reserve(undo_.size() + 1) || !allocator_.ReserveMark()) return false;
  if (!(host ? seam_.map_host : seam_.map)(seam_.owner, range.first, range.count)) return false;
  allocator_.MarkMapped(range.first, range.count);
  for (ChunkIndex i = range.first; i < range.first + range.count; ++i) table_.SetState(i, state);
  (void)undo_.Append(range);
  (host ? counters_.on_host : counters_.mapped) += range.count;
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

ChunkIndex Arena::Missing(Bytes bytes) {
  if (held_) PutBack();
  Extension extension;
  return allocator_.PlanExtension(bytes, &extension) ? extension.missing : 0;
}

ChunkIndex Arena::Release(ChunkIndex count) {
  if (held_) PutBack();
  LeaveOldPlaces();
  allocator_.FoldCache();
  const ChunkIndex released = UnmapFree(count, {});
  return released + UnmapFree(count - released, {ChunkState::kDevice, {}, true, false});
}

// Up to `count` free chunks, the highest first.
ChunkIndex Arena::UnmapFree(ChunkIndex count, const Search& search) {
  ChunkIndex unmapped = 0;
  ChunkIndex below = table_.high_water();
  Range range;
  while (unmapped < count && NextFree(below, count - unmapped, search, &range)) {
    below = range.first;
    if (UnmapRange(range)) unmapped += range.count;
  }
  return unmapped;
}

void Arena::ReleaseHost() {
  holes_on_host_ = false;
  if (table_.host_chunks() == 0) return;
  if (held_) PutBack();
  allocator_.FoldCache();
  UnmapFree(table_.high_water(), {ChunkState::kHost, {}, true, false});
  // Later, when their fences have passed.
  for (ChunkIndex i = 0; i < table_.high_water() && !holes_on_host_; ++i) {
    holes_on_host_ = table_.state(i) == ChunkState::kHost && table_.live(i) == 0;
  }
}

bool Arena::OnHost(const Block* block) const {
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = ChunkOf(block->offset); i <= last; ++i) {
    if (table_.state(i) == ChunkState::kHost) return true;
  }
  return false;
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

// Chunks that `demand` may occupy within so many times the slack.
ChunkIndex Arena::SlotsWithin(Bytes demand, uint32_t slacks) const {
  const Bytes allowed = demand + demand / 1000 * options_.slack_permille * slacks;
  return static_cast<ChunkIndex>(
      std::max(allowed / kChunkBytes, RoundUp(demand, kChunkBytes) / kChunkBytes));
}

void Arena::Pin(Block* block, PinReason reason) {
  const ChunkIndex last = LastChunkOf(block->offset, block->size);
  for (ChunkIndex i = ChunkOf(block->offset); i <= last; ++i) table_.Pin(i, reason);
}

}  // namespace tidemark::core
