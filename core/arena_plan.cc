// The part of core/arena.h that follows a plan of places: whether it fits, and how a request gets
// its place. What the plan is, and when it is followed, is in placement_plan.h. Threads: as the
// header says.

#include <algorithm>

#include "core/arena.h"

namespace tidemark::core {
namespace {

// So many in a thousand of the chunks that can be had are left out of a plan: until every buffer
// lies where the plan wants it, more of them are in use in part only.
constexpr Bytes kReservePermille = 5;

}  // namespace

Block* Arena::AllocateByPlan(const Request& request) {
  const bool followed = plan_.following();
  const Bytes place = plan_.Next(request.bytes, request.stream);
  const RequestNumber number = plan_.number();  // others may come while this one waits
  AnswerPlan();
  if (plan_.following() != followed) KeepForPlan();
  Block* block = nullptr;
  if (place != PlacementPlan::kNowhere) {
    block = PlaceAt(request, plan_base_ + place);
  }
  if (block != nullptr) {
    ++counters_.planned;
  } else {
    block = AllocateAnywhere(request);
  }
  if (block != nullptr) {
    block->number = number;
  } else {
    plan_.Freed(number);
  }
  return block;
}

Block* Arena::PlaceAt(const Request& request, Bytes offset) {
  Block* block = allocator_.AllocateAt(request, offset);
  if (block == nullptr && Extend(request.bytes, offset, false)) {
    block = allocator_.AllocateAt(request, offset);
  }
  return Ordered(block, request.stream);
}

void Arena::AnswerPlan() {
  if (plan_.ready()) {
    const bool fits = plan_.size() <= RoomForPlan() &&
                      plan_.size() <= Bytes{table_.size()} * kChunkBytes - plan_base_;
    fits ? plan_.Accept() : plan_.Refuse();
  }
  while (plan_.asks()) plan_.Pack(RoomForPlan());
}

// The plan lies above everything that stays. Together they may need as many chunks as the slack
// allows and the owner has.
Bytes Arena::RoomForPlan() {
  allocator_.FoldCache();
  ChunkIndex staying = 0;
  ChunkIndex counted = 0;  // chunks up to here
  Bytes made = 0;
  plan_base_ = 0;
  for (const Block* block = allocator_.first(); block != nullptr; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    const PlacementPlan::Fate fate = plan_.FateOf(block->number);
    if (fate == PlacementPlan::Fate::kIsMadeElsewhere) made += block->size;
    if (fate != PlacementPlan::Fate::kStays) continue;
    // What is left of a slab is not for others.
    plan_base_ = block->small ? RoundUp(block->end(), kChunkBytes) : block->end();
    const ChunkIndex end = LastChunkOf(block->offset, block->size) + 1;
    if (end <= counted) continue;
    staying += end - std::max(counted, ChunkOf(block->offset));
    counted = end;
  }
  const Bytes had = Bytes{mapped()} + Available();
  const Bytes most =
      std::min<Bytes>(SlotsFor(allocator_.peak_requested()), had - had * kReservePermille / 1000);
  const Bytes rest = Bytes{counted} * kChunkBytes - plan_base_;
  const Bytes taken = Bytes{staying} * kChunkBytes - rest + made;
  return most * kChunkBytes <= taken ? 0 : most * kChunkBytes - taken;
}

void Arena::KeepForPlan() {
  if (!plan_.following() || plan_.size() == 0) return allocator_.KeepFree(0, 0);
  const ChunkIndex first = ChunkOf(plan_base_);
  allocator_.KeepFree(first, LastChunkOf(plan_base_, plan_.size()) + 1 - first);
}

}  // namespace tidemark::core
