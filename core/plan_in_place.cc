// The part of core/placement_plan.h for jobs in which no chunk has to move, but whose places do not
// recur by themselves: optimizer state that is made anew in each step goes to another place each
// time and takes the others along. The requests are packed around what lives at one moment, as it
// lies, within what is mapped. So nothing moves and nothing more is mapped, and requests need no
// search.
//
// That moment is the request before which the least of what is packed lives. State goes to other
// places later, so all of the packing is done in that one request: some 30 ms where a period has
// 5,000 requests. Where the plan does not last, there is none for at least 8 periods, each time for
// longer. Threads: none of its own.

#include <algorithm>

#include "core/placement_plan.h"

namespace tidemark::core {
namespace {

constexpr uint32_t kQuietFor = 4;           // periods without a plan before one is sought
constexpr uint32_t kLooksAtOnce = 1 << 24;  // 60 ms at most

}  // namespace

// False: too early, or not all requests have known lives.
bool PlacementPlan::SeekInPlace(uint32_t period) {
  const uint64_t since = std::max(quiet_since_, watched_since_);
  if (requests_ < in_place_at_ || requests_ - since < uint64_t{kQuietFor} * period) return false;
  in_place_at_ = requests_ + uint64_t{kQuietFor} * period;  // if it cannot be
  if (!Collect(period) || Spare() != 0 || !packing_.Look(&plan_)) return false;
  as_is_ = false;
  in_place_ = true;
  taken_.Clear();
  turns_.Unplace();
  Accept();
  return true;
}

bool PlacementPlan::AddTaken(Bytes begin, Bytes end) {
  const auto first = static_cast<uint32_t>(begin / kBlockBytes);
  const auto units = static_cast<uint32_t>((end - begin) / kBlockBytes);
  if (taken_.empty() || taken_[taken_.size() - 1].end() < first) {
    return taken_.Append({first, units});
  }
  Taken& last = taken_[taken_.size() - 1];
  last.units = std::max(last.end(), first + units) - last.place;
  return true;
}

// Where one lies that takes turns is one of the places from now on.
bool PlacementPlan::AddLive(RequestNumber number, Bytes begin, Bytes end) {
  if (FateOf(number) == Fate::kIsPlaced) {
    const Recurring& request = Planned(number);
    const bool takes_turns = request.life > plan_.size();
    const auto place = static_cast<uint32_t>(begin / kBlockBytes);
    if (takes_turns && !turns_.PutAt(place, request.place, number)) return false;
  }
  return AddTaken(begin, end);
}

// Those that nobody has at present, each as high as it can be: below, more of other sizes fits.
bool PlacementPlan::PlaceTurns(uint64_t room) {
  uint32_t units = 0;
  while (uint32_t* place = turns_.Unplaced(&units)) {
    uint64_t end = room;
    size_t above = taken_.size();
    while (above > 0 && taken_[above - 1].end() + uint64_t{units} > end) {
      end = taken_[--above].place;
    }
    if (end < units || !taken_.Append(Taken())) return false;
    std::move_backward(taken_.begin() + above, taken_.end() - 1, taken_.end());
    *place = static_cast<uint32_t>(end - units);
    taken_[above] = {*place, units};
  }
  turns_.Sort(number());
  return true;
}

// All that is mapped is for the plan then.
void PlacementPlan::PackInPlace(Bytes room) {
  top_ = room / kBlockBytes;
  if (!in_step_ || !PlaceTurns(top_)) return Refuse();
  const bool starts = packing_.Start(&plan_, {top_, &taken_, &turns_.berths()});
  if (!starts || !packing_.Work(kLooksAtOnce) || !packing_.found()) return Refuse();
  packing_.WritePlaces(&plan_);
  ++plans_;
  BeginFollowing();
}

}  // namespace tidemark::core
