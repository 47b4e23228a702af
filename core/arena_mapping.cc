// The part of core/arena_allocator.h that concerns chunks: where a request fits with the fewest
// chunks to map, and what changes when a chunk was mapped or is to be unmapped. Threads: as the
// header says.

#include "core/arena_allocator.h"

namespace tidemark::core {

bool ArenaAllocator::PlanExtension(Bytes bytes, Extension* extension) {
  if (bytes > Bytes{table_->size()} * kChunkBytes) return false;
  FoldCache();
  Bytes size = RoundUp(bytes == 0 ? 1 : bytes, kBlockBytes);
  Bytes alignment = AlignmentFor(size, bytes);
  if (size <= kSmallLimit) size = alignment = kChunkBytes;
  Extension best;
  Bytes best_offset = 0;
  for (const FreeRuns::Run& run : runs_.All()) {
    if (run.size() >= size) ConsiderRun(run, size, alignment, &best, &best_offset);
  }
  if (best.count == 0) return false;
  *extension = best;
  return true;
}

bool ArenaAllocator::PlanExtensionAt(Bytes bytes, Bytes offset, Extension* extension) {
  FoldCache();
  const Bytes end = offset + RoundUp(bytes == 0 ? 1 : bytes, kBlockBytes);
  if (end > Bytes{table_->size()} * kChunkBytes) return false;
  Extension found = {ChunkOf(offset), LastChunkOf(offset, end - offset) - ChunkOf(offset) + 1, 0};
  for (const Block* b = BlockAt(offset); b != nullptr && b->offset < end; b = b->next) {
    if (!IsFreeForAll(b)) return false;
    if (b->mapped) continue;
    const Bytes from = b->offset > offset ? b->offset : offset;
    const Bytes until = b->end() < end ? b->end() : end;
    found.missing += LastChunkOf(from, until - from) - ChunkOf(from) + 1;
  }
  *extension = found;
  return found.missing != 0;
}

// Candidates begin where a block of the run begins, or end where one ends.
void ArenaAllocator::ConsiderRun(const FreeRuns::Run& run, Bytes size, Bytes alignment,
                                 Extension* best, Bytes* best_offset) const {
  const Bytes begin = run.offset();
  const Bytes end = begin + run.size();
  for (const Block* b = run.first(); IsFreeForAll(b); b = b->next) {
    const Bytes from = RoundUp(b->offset, alignment);
    if (from + size <= end) Consider(from, size, best, best_offset);
    if (b->end() < begin + size) continue;
    const Bytes until = (b->end() - size) / alignment * alignment;
    if (until >= begin) Consider(until, size, best, best_offset);
  }
  const Bytes beyond = RoundUp(Bytes{kept_first_ + kept_count_} * kChunkBytes, alignment);
  if (kept_count_ != 0 && beyond >= begin && beyond + size <= end) {
    Consider(beyond, size, best, best_offset);
  }
}

void ArenaAllocator::Consider(Bytes offset, Bytes size, Extension* best, Bytes* best_offset) const {
  if (InKept(offset, size)) return;
  Extension candidate;
  candidate.first = ChunkOf(offset);
  const ChunkIndex last = LastChunkOf(offset, size);
  candidate.count = last - candidate.first + 1;
  for (ChunkIndex chunk = candidate.first; chunk <= last; ++chunk) {
    if (table_->state(chunk) == ChunkState::kUnmapped) ++candidate.missing;
  }
  const bool better = best->count == 0 || candidate.missing < best->missing ||
                      (candidate.missing == best->missing && offset < *best_offset);
  if (!better) return;
  *best = candidate;
  *best_offset = offset;
}

bool ArenaAllocator::MarkMapped(ChunkIndex first, ChunkIndex count) {
  return Mark(first, count, true);
}

bool ArenaAllocator::MarkUnmapped(ChunkIndex first, ChunkIndex count) {
  FoldCache();
  return Mark(first, count, false);
}

// The chunks as a block of their own, in no index; null: they are not free, or not `mapped` alike.
// Free neighbours in the same state are one block, so a run of chunks lies in one.
Block* ArenaAllocator::CutOut(ChunkIndex first, ChunkIndex count, bool mapped) {
  const Bytes offset = Bytes{first} * kChunkBytes;
  const Bytes size = Bytes{count} * kChunkBytes;
  Block* block = BlockAt(offset);
  if (!IsFreeForAll(block) || block->mapped != mapped) return nullptr;
  if (block->offset > offset || block->end() < offset + size) return nullptr;
  RemoveFromIndex(block);
  return Carve(block, offset, size);
}

bool ArenaAllocator::Mark(ChunkIndex first, ChunkIndex count, bool mapped) {
  Block* block = ReserveMark() ? CutOut(first, count, !mapped) : nullptr;
  if (block == nullptr) return false;
  block->mapped = mapped;
  block->fence = 0;
  block->stream = kAnyStream;
  AddToIndex(MergeWithNeighbours(block));
  return true;
}

// The new place waits even on the stream that used the old one: what a kernel writes at one address
// is only sure to be seen at another by work that begins after it has ended.
bool ArenaAllocator::MarkAliased(ChunkIndex from, ChunkIndex to, ChunkIndex count) {
  if (!ReserveMark()) return false;
  Block* left = CutOut(from, count, true);
  Block* taken = left == nullptr ? nullptr : CutOut(to, count, false);
  if (taken == nullptr) {
    if (left != nullptr) AddToIndex(MergeWithNeighbours(left));
    return false;
  }
  left->state = Block::State::kLeaving;
  left->mapped = false;
  leaving_.Append(left);
  taken->mapped = true;
  taken->fence = left->fence;
  taken->stream = kAnyStream;
  AddToIndex(MergeWithNeighbours(taken));
  return true;
}

void ArenaAllocator::MarkLeft(Block* block) {
  leaving_.Remove(block);
  block->state = Block::State::kFree;
  block->fence = 0;
  block->stream = kAnyStream;
  AddToIndex(MergeWithNeighbours(block));
}

FenceId ArenaAllocator::FenceOf(ChunkIndex chunk) const {
  return BlockAt(Bytes{chunk} * kChunkBytes)->fence;
}

}  // namespace tidemark::core
