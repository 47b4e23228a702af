// The part of core/arena_allocator.h that leaves bytes to a plan: what is free there, and what has
// a place in the plan, becomes one held block for each run, and comes back. When, and who lives
// there, is in arena_held.cc. Threads: as the header says.

#include <algorithm>

#include "core/arena_allocator.h"

namespace tidemark::core {

bool ArenaAllocator::ReserveHold(Bytes begin, Bytes end, uint32_t parts) {
  int nodes = 3 * static_cast<int>(parts) + kNodesPerCall;  // two cuts, and a run more
  bool inside = false;
  for (const Block* b = BlockAt(begin); b != nullptr && b->offset < end; b = b->next) {
    if (MayHold(b) && !inside) ++nodes;
    inside = MayHold(b);
    if (b->slot != 0) ++nodes;
  }
  if (!pool_.Reserve(nodes) || !ReserveIndexes()) return false;
  held_begin_ = begin;
  held_end_ = end;
  held_fence_ = 0;
  held_blocks_ = 0;
  gone_ = Use();
  return true;
}

void ArenaAllocator::Hold(Bytes begin, Bytes end) {
  SplitHole(begin);
  SplitHole(end);
  for (Block* b = BlockAt(begin); b != nullptr && b->offset < end; b = b->next) {
    if (!MayHold(b)) continue;
    b = HoldRun(b, end);
    held_fence_ = std::max(held_fence_, b->fence);
  }
}

// Where `at` lies inside a hole, it ends there and another one begins.
void ArenaAllocator::SplitHole(Bytes at) {
  if (at >= Bytes{table_->size()} * kChunkBytes) return;
  Block* block = BlockAt(at);
  if (block->offset == at || !IsHole(block)) return;
  RemoveFromIndex(block);
  AddToIndex(SplitAt(block, at));
  AddToIndex(block);
}

// One block takes the place of `first` and of those after it.
Block* ArenaAllocator::HoldRun(Block* first, Bytes end) {
  Block* held = pool_.Take();
  held->Reset();
  held->state = Block::State::kHeld;
  held->mapped = true;
  held->offset = first->offset;
  held->previous = first->previous;
  Block* block = first;
  while (block != nullptr && block->offset < end && MayHold(block)) {
    Block* next = block->next;
    held->size += block->size;
    ForgetStart(block);
    if (block->slot != 0) {
      ++held_blocks_;
    } else {
      AddFence(held, block->fence, block->stream);
      RemoveFromIndex(block);
      pool_.Put(block);
    }
    block = next;
  }
  held->next = block;
  LinkNeighbours(held);
  NoteStart(held);
  return held;
}

void ArenaAllocator::LinkNeighbours(Block* block) {
  (block->previous != nullptr ? block->previous->next : first_) = block;
  if (block->next != nullptr) block->next->previous = block;
}

void ArenaAllocator::Unhold() {
  for (Block* b = BlockAt(held_begin_); b != nullptr && b->offset < held_end_; b = b->next) {
    if (b->state != Block::State::kHeld) continue;
    AddFence(b, gone_.fence, gone_.stream);
    const Bytes offset = b->offset;
    b->state = Block::State::kFree;
    ReturnHole(b);
    b = BlockAt(offset);
  }
}

// The nodes for it were reserved when it became live.
void ArenaAllocator::Restore(Block* block) {
  Block* hole = BlockAt(block->offset);
  Block* taken = TakeAt(holes_.Locate(hole->offset), hole, block->offset, block->size);
  ForgetStart(taken);
  block->previous = taken->previous;
  block->next = taken->next;
  LinkNeighbours(block);
  NoteStart(block);
  pool_.Put(taken);
  --held_blocks_;
}

void ArenaAllocator::AddHeldTo(AllocatorStats* stats, FenceId passed,
                               const HeldPlaces& places) const {
  Bytes free = 0;
  uint32_t bound = 0;
  const Block* live = places.Next(&bound);
  for (const Block* b = BlockAt(held_begin_); b != nullptr && b->offset < held_end_; b = b->next) {
    if (b->state != Block::State::kHeld) continue;
    for (Bytes at = b->offset; at < b->end();) {
      const bool ends = live == nullptr || live->offset >= b->end();
      const Bytes gap = (ends ? b->end() : live->offset) - at;
      free += gap;
      stats->largest_free_mapped = std::max(stats->largest_free_mapped, gap);
      at = ends ? b->end() : live->end();
      if (!ends) live = places.Next(&bound);
    }
  }
  stats->free_mapped += free;
  stats->waiting += std::min(free, places.Waiting(passed));
}

}  // namespace tidemark::core
