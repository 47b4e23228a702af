// The part of core/arena.h that follows a plan of places: whether it fits, and how a request gets
// its place. What the plan is, and when it is followed, is in placement_plan.h. Threads: as the
// header says.

#include <algorithm>

#include "core/arena.h"

namespace tidemark::core {
namespace {

// While buffers change places, one chunk more in so many is in use, as what lies where others leave
// room does not fill it.
constexpr uint64_t kInPart = 512;
constexpr uint32_t kSlacks = 3;  // that it may take

}  // namespace

Block* Arena::AllocateByPlan(const Request& request) {
  if (plan_.following() && StartHolding(request)) {
    return AllocateBesideHeld(request.bytes, request.stream);
  }
  const bool followed = plan_.following();
  Bytes place = plan_.Next(request.bytes, request.stream);
  const RequestNumber number = plan_.number();  // others may come while this one waits
  AnswerPlan();
  if (plan_.begins() && plan_.stays()) plan_base_ = 0;
  if (plan_.begins() && !plan_.stays() && !FitsWhileItChanges(place)) plan_.Postpone();
  if (plan_.following() != followed) KeepForPlan();
  if (plan_.begins() && plan_.in_place()) place = plan_.PlaceOf(plan_.phase());
  if (!plan_.following()) place = PlacementPlan::kNowhere;
  return AllocatePlanned(request, place, number);
}

Block* Arena::AllocatePlanned(const Request& request, Bytes place, RequestNumber number) {
  Block* block = nullptr;
  if (place != PlacementPlan::kNowhere && !plan_.as_is()) {
    block = PlaceAt(request, plan_base_ + place);
  }
  if (block != nullptr) {
    ++counters_.planned;
  } else {
    block = AllocateAnywhere(request);
    // The rules of which a plan as it is came give its places by themselves.
    const bool kept = plan_.as_is() && block != nullptr && block->offset == plan_base_ + place;
    missed_ = missed_ || (place < plan_.packed() && !kept);
  }
  if (block != nullptr) {
    block->number = number;
    plan_.Placed(number, block->offset);
  } else {
    plan_.Freed(number);
  }
  return block;
}

Block* Arena::PlaceAt(const Request& request, Bytes offset, Beyond beyond) {
  Block* block = allocator_.AllocateAt(request, offset);
  if (block == nullptr && Extend(request.bytes, offset, false, beyond)) {
    block = allocator_.AllocateAt(request, offset);
  }
  return Ordered(block, request.stream);
}

void Arena::AnswerPlan() {
  if (plan_.asks() && plan_.in_place()) PackInPlace();
  if (plan_.ready()) {
    const bool fits = plan_.size() <= RoomForPlan() &&
                      plan_.size() <= Bytes{table_.size()} * kChunkBytes - plan_base_;
    fits ? plan_.Accept() : plan_.Refuse();
  }
  while (plan_.asks()) plan_.Pack(RoomForPlan());
}

// Around what lives, slabs, and what is not mapped.
void Arena::PackInPlace() {
  allocator_.FoldCache();
  const Bytes end = Bytes{table_.high_water()} * kChunkBytes;
  bool fits = !Evicts();
  for (const Block* b = allocator_.first(); fits && b != nullptr && b->offset < end; b = b->next) {
    if (b->small) {
      const Bytes slab = b->offset / kChunkBytes * kChunkBytes;
      fits = plan_.AddTaken(slab, slab + kChunkBytes);
    } else if (b->state == Block::State::kLive) {
      fits = plan_.AddLive(b->number, b->offset, b->end());
    } else if (!b->mapped) {
      fits = plan_.AddTaken(b->offset, std::min(b->end(), end));
    }
  }
  plan_.PackInPlace(fits ? end : 0);
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
  const Bytes most = std::min<Bytes>(SlotsWithin(allocator_.peak_requested(), plan_.slacks()),
                                     Bytes{mapped()} + Available());
  const Bytes rest = Bytes{counted} * kChunkBytes - plan_base_;
  const Bytes taken = Bytes{staying} * kChunkBytes - rest + made;
  return most * kChunkBytes <= taken ? 0 : most * kChunkBytes - taken;
}

// Until every buffer lies where the plan wants it, more chunks are in use in part. A request must
// not fail then that would have had its chunks without a plan. The one in hand goes to `place`.
bool Arena::FitsWhileItChanges(Bytes place) {
  const auto end = static_cast<ChunkIndex>(LastChunkOf(plan_base_, plan_.size()) + 1);
  if (!transition_.Begin(std::max(end, table_.high_water()))) return false;
  allocator_.FoldCache();
  for (ChunkIndex i = 0; i < table_.high_water(); ++i) transition_.SetLive(i, table_.live(i));
  if (!PlayFrees()) return false;
  const Array<Recurring>& requests = plan_.requests();
  uint32_t phase = plan_.phase();
  for (uint32_t time = 0; time < requests.size(); ++time) {
    if (time != 0) place = plan_.PlaceAhead(time);
    if (!PlayPlaced(time, requests[phase], place)) return false;
    if (++phase == requests.size()) phase = 0;
  }
  const Transition::InUse most = transition_.MostInUse();
  const uint64_t needed = std::min(most.at_worst, most.likely + most.likely / kInPart);
  const ChunkIndex slots = SlotsWithin(allocator_.peak_requested(), kSlacks);
  return needed <= std::max(mapped(), slots) && needed <= uint64_t{mapped()} + Available();
}

bool Arena::PlayFrees() {
  for (const Block* block = allocator_.first(); block != nullptr; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    const uint32_t end = plan_.EndOf(block->number);
    if (end == PlacementPlan::kNever) continue;
    const ChunkIndex last = LastChunkOf(block->offset, block->size);
    if (!transition_.Free(end, ChunkOf(block->offset), last)) return false;
  }
  return true;
}

// What has no place lies anywhere.
bool Arena::PlayPlaced(uint32_t time, const Recurring& request, Bytes place) {
  const Bytes size = Bytes{request.units} * kBlockBytes;
  if (size <= kSmallLimit || request.life == 0) return true;
  const uint32_t end = time + request.life;
  const Bytes offset = plan_base_ + place;
  if (place != PlacementPlan::kNowhere && IsFreeBy(time, offset, size)) {
    return transition_.Use(time, end, ChunkOf(offset), LastChunkOf(offset, size));
  }
  return transition_.UseElsewhere(time, end, request.units);
}

// Of what lies there now.
bool Arena::IsFreeBy(uint32_t time, Bytes offset, Bytes size) const {
  const Block* block = allocator_.BlockAt(offset);
  for (; block != nullptr && block->offset < offset + size; block = block->next) {
    if (block->state != Block::State::kLive) continue;
    const uint32_t end = plan_.EndOf(block->number);
    if (end == PlacementPlan::kNever || end > time) return false;
  }
  return true;
}

// What a plan that nothing moved for keeps from others may be all that a request needs.
bool Arena::PlanKeepsFrom(Bytes bytes) const {
  if (!plan_.following() || !plan_.stays()) return false;
  return plan_.as_is() ? held_ : RoundUp(bytes, kChunkBytes) > FreshFor(bytes) * kChunkBytes;
}

void Arena::KeepForPlan() {
  const bool keeps = plan_.following() && !plan_.as_is() && plan_.size() != 0;
  if (!keeps) return allocator_.KeepFree(0, 0);
  const ChunkIndex first = ChunkOf(plan_base_);
  allocator_.KeepFree(first, LastChunkOf(plan_base_, plan_.size()) + 1 - first);
}

}  // namespace tidemark::core
