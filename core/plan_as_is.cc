// The part of core/placement_plan.h for jobs in which no chunk has to move and every request gets
// the place again that it had a period before, as the arena's own rules give it: the places of the
// last period are a plan as they are. Nothing is packed, nothing changes its place, and nothing is
// put anywhere for its sake until the arena holds its bytes: then it saves the searches.
// Threads: none of its own.

#include <algorithm>

#include "core/placement_plan.h"

namespace tidemark::core {

void PlacementPlan::Placed(RequestNumber number, Bytes offset) {
  Entry& entry = log_[number % kLog];
  if (entry.number != number) return;
  entry.place = static_cast<uint32_t>(offset / kBlockBytes);
  const uint32_t period = period_.length();
  if ((period | same_places_) == 0) return;
  if (state_ != State::kWatching || period != same_period_ || requests_ <= period) {
    same_period_ = period;
    same_places_ = 0;
    return;
  }
  const Entry& before = At(requests_ - period);
  const bool same = before.place == entry.place && before.units == entry.units;
  same_places_ = same ? same_places_ + 1 : 0;
}

// Of the period before the last one, which the last one repeated. False: it has no such plan.
bool PlacementPlan::TakeAsIs(uint32_t period) {
  if (same_places_ < period || same_period_ != period || requests_ < as_is_at_) return false;
  if (MovedWithin(2 * uint64_t{period}) != 0) return false;
  as_is_at_ = requests_ + uint64_t{period} * kPatienceAsIs;
  if (!Collect(period)) return false;
  const uint64_t first = requests_ - 2 * uint64_t{period} + 1;
  uint64_t top = 0;
  for (uint32_t i = 0; i < period; ++i) {
    Recurring& request = plan_[i];
    const uint32_t place = At(first + i).place;
    if (request.life == 0 || request.life > period || place == Recurring::kNowhere) return false;
    request.place = place;
    top = std::max(top, uint64_t{place} + request.units);
  }
  top_ = top;
  as_is_ = true;
  ++plans_;
  Accept();
  return true;
}

void PlacementPlan::DropAsIs() {
  if (!as_is_ || state_ < State::kWaiting) return;
  StopFollowing(State::kWatching);
  in_step_ = false;
  broken_ = 0;
}

}  // namespace tidemark::core
