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
  if (missed && plan_.stays() && ++missed_periods_ == kMostMissed) plan_.Refuse();
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

// All up to `end`; of a plan that others lie between, only what it uses. False: out of memory.
bool Arena::HoldParts(Bytes end) {
  uint64_t first = 0, beyond = 0;
  uint32_t parts = 0;
  for (uint32_t at = 0; places_.NextUsed(&at, &first, &beyond);) ++parts;
  if (!allocator_.ReserveHold(plan_base_, end, parts)) return false;
  if (!plan_.stays()) allocator_.Hold(plan_base_, end);
  for (uint32_t at = 0; plan_.stays() && places_.NextUsed(&at, &first, &beyond);) {
    allocator_.Hold(plan_base_ + first * kBlockBytes, plan_base_ + beyond * kBlockBytes);
  }
  return true;
}

// What is neither free nor in its place may lie where the plan never uses the bytes.
bool Arena::HoldPlan() {
  LeaveOldPlaces();
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
  plan_.CatchUp();
  held_ = false;
  allocator_.Unhold();
  uint32_t bound = 0;
  while (Block* block = places_.Next(&bound)) {
    block->slot = 0;
    allocator_.Restore(block);
  }
  places_.Clear();
}

// The commonest case alone: the request is due, its place is free, nothing is to be waited for, and
// nobody is to be told.
Block* Arena::AllocateHeld(Bytes bytes, StreamId stream) {
  const uint32_t index = plan_.next_phase();
  if (!places_.Fits(index, PlacementPlan::UnitsOf(bytes), stream, passed_) || !plan_.within() ||
      !allocator_.CanBeginHeld()) {
    return AllocateBesideHeld(bytes, stream);
  }
  ++counters_.planned;
  const RequestNumber number = plan_.StepWithin();
  Block* block = allocator_.BeginHeld(plan_base_ + places_.OffsetOf(index), bytes, number);
  places_.Take(index, block);
  return block;
}

Block* Arena::AllocateBesideHeld(Bytes bytes, StreamId on) {
  const Request request{bytes, passed_, on, false};
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
    block = NewHeld(index, request.bytes, number);
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

Block* Arena::NewHeld(uint32_t index, Bytes bytes, RequestNumber number) {
  const Bytes offset = plan_base_ + places_.OffsetOf(index);
  Block* block = allocator_.BeginHeld(offset, bytes, number);
  if (allocator_.held_counted()) allocator_.CountHeld(block, true);
  places_.Take(index, block);
  return block;
}

void Arena::FreeHeld(Block* block, FenceId fence, StreamId stream) {
  if (allocator_.held_counted()) return FreeCounted(block, fence, stream);
  const uint32_t slot = block->slot;
  const ArenaAllocator::Use use = allocator_.EndHeld(block, fence, stream);
  places_.Give(slot, use.fence, use.stream);
}

void Arena::FreeCounted(Block* block, FenceId fence, StreamId stream) {
  const uint32_t slot = block->slot;
  allocator_.CountHeld(block, false);
  const ArenaAllocator::Use use = allocator_.EndHeld(block, fence, stream);
  places_.Give(slot, use.fence, use.stream);
}

// A buffer of a slab may lie between what is held, but no slab is.
Block* Arena::FindBesideHeld(Bytes offset) const {
  if (offset - plan_base_ < plan_.packed() && !allocator_.InSlab(offset)) {
    if (Block* block = places_.Find(offset - plan_base_)) return block;
  }
  return allocator_.Find(offset);
}

}  // namespace tidemark::core
