// The part of core/arena.h that follows a plan of places: whether it fits, and how a request gets
// its place. What the plan is, and when it is followed, is in placement_plan.h. Threads: as the
// header says.

#include <algorithm>

#include "core/arena.h"

namespace tidemark::core {

Block* Arena::AllocateByPlan(const Request& request) {
  const bool followed = plan_.following();
  const Bytes place = plan_.Next(request.bytes, request.stream);
  const RequestNumber number = plan_.number();  // others may come while this one waits
  AnswerPlan();
  if (plan_.following() != followed) KeepForPlan();
  Block* block = nullptr;
  if (place != PlacementPlan::kNowhere) {
    block = PlaceAt(request, Bytes{plan_base_} * kChunkBytes + place);
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
                      plan_.size() <= Bytes{table_.size() - plan_base_} * kChunkBytes;
    fits ? plan_.Accept() : plan_.Refuse();
  }
  // A refused plan may ask again, for less.
  while (plan_.asks()) plan_.Pack(RoomForPlan());
}

// The plan lies above everything that stays. Together they may need as many chunks as the slack
// allows and the owner has.
Bytes Arena::RoomForPlan() {
  allocator_.FoldCache();
  ChunkIndex staying = 0;
  ChunkIndex counted = 0;  // chunks up to here
  Bytes made = 0;
  for (const Block* block = allocator_.first(); block != nullptr; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    const PlacementPlan::Fate fate = plan_.FateOf(block->number);
    if (fate == PlacementPlan::Fate::kIsMadeElsewhere) made += block->size;
    if (fate != PlacementPlan::Fate::kStays) continue;
    const ChunkIndex end = LastChunkOf(block->offset, block->size) + 1;
    if (end <= counted) continue;
    staying += end - std::max(counted, ChunkOf(block->offset));
    counted = end;
  }
  plan_base_ = counted;
  const Bytes most =
      std::min<Bytes>(SlotsFor(allocator_.peak_requested()), Bytes{mapped()} + Available());
  const Bytes taken = Bytes{staying} * kChunkBytes + made;
  return most * kChunkBytes <= taken ? 0 : most * kChunkBytes - taken;
}

void Arena::KeepForPlan() {
  const Bytes chunks = RoundUp(plan_.size(), kChunkBytes) / kChunkBytes;
  if (plan_.following()) {
    allocator_.KeepFree(plan_base_, static_cast<ChunkIndex>(chunks));
  } else {
    allocator_.KeepFree(0, 0);
  }
}

}  // namespace tidemark::core
