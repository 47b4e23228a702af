// How the arena holds the bytes of a plan that it has followed for a period: they leave the blocks
// in address order and the indexes, and each request of the plan gets its place without a search
// (held_places.h). Everything else goes on beside it. Whoever needs all blocks, or a request that
// was not due, has them put back first; after the next period the arena holds them again.
// Threads: as core/arena.h says.

#include <algorithm>
#include <utility>

#include "core/arena.h"

namespace tidemark::core {
namespace {

constexpr uint32_t kBuiltAtOnce = 4;  // requests of the plan for each request: 0.3 us
constexpr uint32_t kMostMissed = 4;   // periods in a row in which a plan as it is was not kept to

}  // namespace

// ---- The allocator's side: blocks.

bool ArenaAllocator::ReserveHold(Bytes begin, Bytes end, uint32_t parts) {
  int nodes = 3 * static_cast<int>(parts) + kNodesPerCall;  // two cuts, and a run more
  bool inside = false;
  for (const Block* b = BlockAt(begin); b != nullptr && b->offset < end; b = b->next) {
    if (MayHold(b) && !inside) ++nodes;
    inside = MayHold(b);
    if (b->slot != 0) ++nodes;
  }
  if (!pool_.Reserve(nodes) || !holes_.Reserve(pool_.made())) return false;
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

// ---- The arena's side: when.

// What it takes is built while the plan is followed.
bool Arena::StartHolding(const Request& request) {
  if (places_of_ != plan_.plans() || !places_.started()) {
    if (places_of_ == plan_.plans()) return false;  // there was no memory for it
    places_of_ = plan_.plans();
    if (!places_.Start(&plan_.requests())) return false;
  }
  if (!places_.ready()) {
    (void)places_.Work(kBuiltAtOnce);
    return false;
  }
  if (!plan_.BeginsQuietly(request.bytes, request.stream)) return false;
  // One that lay elsewhere was not the last to use its place, as its successors take for granted.
  const bool missed = std::exchange(missed_, false);
  if (!missed) missed_periods_ = 0;
  // The rules may have settled on other places for good.
  if (missed && plan_.as_is() && ++missed_periods_ == kMostMissed) plan_.DropAsIs();
  return !missed && table_.host_chunks() == 0 && HoldPlan();
}

// Whether the block is where the plan wants it. It then has its place.
bool Arena::IsInPlace(Block* block) {
  if (block->state != Block::State::kLive || block->number == 0) return false;
  const uint32_t request = plan_.IndexOf(block->number);
  if (request == PlacementPlan::kNone || !places_.Has(request)) return false;
  if (plan_base_ + places_.OffsetOf(request) != block->offset) return false;
  places_.Take(request, block);
  return true;
}

// All up to `end`; of a plan as it is, only what it uses: the rest is for others. False: out of
// memory.
bool Arena::HoldParts(Bytes end) {
  uint64_t first = 0, beyond = 0;
  uint32_t parts = 0;
  for (uint32_t at = 0; places_.NextUsed(&at, &first, &beyond);) ++parts;
  if (!allocator_.ReserveHold(plan_base_, end, parts)) return false;
  if (!plan_.as_is()) allocator_.Hold(plan_base_, end);
  for (uint32_t at = 0; plan_.as_is() && places_.NextUsed(&at, &first, &beyond);) {
    allocator_.Hold(plan_base_ + first * kBlockBytes, plan_base_ + beyond * kBlockBytes);
  }
  return true;
}

// What is neither free nor in its place may lie where the plan never uses the bytes.
bool Arena::HoldPlan() {
  allocator_.FoldCache();
  places_.Clear();
  const Bytes end = plan_base_ + plan_.packed();
  bool fits = true;
  for (Block* b = allocator_.BlockAt(plan_base_); fits && b != nullptr && b->offset < end;
       b = b->next) {
    if (IsInPlace(b) || ArenaAllocator::MayHold(b)) continue;
    const Bytes from = std::max(b->offset, plan_base_) - plan_base_;
    fits = places_.Unused(from / kBlockBytes, (b->end() - plan_base_) / kBlockBytes);
  }
  held_ = fits && HoldParts(end);
  uint32_t bound = 0;
  while (Block* block = places_.Next(&bound)) {
    if (held_) plan_.Foresee(block->number);
    if (!held_) block->slot = 0;
  }
  if (held_) {
    places_.Await(allocator_.held_fence());
    CountLater();
  } else {
    places_.Clear();
  }
  return held_;
}

// Pins end with a chunk's last buffer, so that where there are any, buffers are counted.
void Arena::CountLater() {
  if (!allocator_.held_counted() || table_.pinned_chunks() != 0) return;
  CountHeld(false);
  table_.CountLater([](void* arena) { static_cast<Arena*>(arena)->CountNow(); }, this);
}

void Arena::CountNow() {
  if (allocator_.held_counted()) return;
  table_.CountLater(nullptr, nullptr);
  CountHeld(true);
}

void Arena::CountHeld(bool add) {
  allocator_.SetHeldCounted(add);
  uint32_t bound = 0;
  while (const Block* block = places_.Next(&bound)) allocator_.CountHeld(block, add);
}

void Arena::PutBack() {
  CountNow();
  held_ = false;
  allocator_.Unhold();
  uint32_t bound = 0;
  while (Block* block = places_.Next(&bound)) {
    block->slot = 0;
    allocator_.Restore(block);
  }
  places_.Clear();
}

Block* Arena::AllocateHeld(const Request& request) {
  if (Block* block = TakeDue(request)) return block;
  const bool begins = !plan_.within();
  if (!plan_.Step(request.bytes, request.stream)) {
    PutBack();
    return AllocateByPlan(request);
  }
  if (begins) CountLater();
  const uint32_t index = plan_.phase();
  const RequestNumber number = plan_.number();
  if (!places_.Has(index)) return AllocatePlanned(request, plan_.PlaceOf(index), number);
  FenceId fence = 0;
  StreamId stream = kAnyStream;
  Block* block = nullptr;
  if (places_.Offer(index, passed_, &fence, &stream) && allocator_.ReserveMark()) {
    block = NewHeld(index, request);
  }
  if (block == nullptr) {
    PutBack();
    return AllocatePlanned(request, places_.OffsetOf(index), number);
  }
  block->fence = fence;
  block->stream = stream;
  if (fence == 0 || Ordered(block, request.stream) != nullptr) {
    ++counters_.planned;
    return block;
  }
  missed_ = true;
  return AllocatePlanned(request, PlacementPlan::kNowhere, number);
}

// The commonest case alone: the place is free, and nothing is to be waited for.
inline Block* Arena::TakeDue(const Request& request) {
  const uint32_t index = plan_.next_phase();
  const uint64_t units = (request.bytes + kBlockBytes - 1) / kBlockBytes;
  if (!places_.Fits(index, units, request.stream, passed_) || !plan_.within()) return nullptr;
  if (!allocator_.ReserveMark()) return nullptr;
  plan_.StepWithin();
  ++counters_.planned;
  return NewHeld(index, request);
}

inline Block* Arena::NewHeld(uint32_t index, const Request& request) {
  Block* block = allocator_.NewHeld(plan_base_ + places_.OffsetOf(index), request);
  block->number = plan_.number();
  places_.Take(index, block);
  return block;
}

void Arena::FreeHeld(Block* block, FenceId fence, StreamId stream) {
  const ArenaAllocator::Use use = allocator_.EndHeld(block, fence, stream);
  places_.Give(block, use.fence, use.stream);  // the block is in the pool and as it was
}

}  // namespace tidemark::core
