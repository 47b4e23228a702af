// The part of core/placement_plan.h for jobs in which no chunk has to move and every request gets
// the place again that it had a period before, as the arena's own rules give it: the places of the
// last period are a plan as they are. Nothing is packed, nothing changes its place, and nothing is
// put anywhere for its sake until the arena holds its bytes: then it saves the searches. Also for
// how long a job whose chunks stay where they are is watched. Threads: none of its own.

#include <algorithm>

#include "core/placement_plan.h"

namespace tidemark::core {
namespace {

// Finding such a plan and holding its bytes costs about as much as is saved in so many periods.
constexpr uint32_t kWorthAsIs = 6;
constexpr uint32_t kFirstPatienceAsIs = 8;  // periods
constexpr uint32_t kMostPatienceAsIs = 1 << 10;
constexpr uint32_t kWaitAsIs = 4;  // periods in which it may begin again

}  // namespace

bool PlacementPlan::LookAgain() {
  until_look_ = kLookEvery;
  return Start();
}

// Watching costs every request some nanoseconds: a job whose chunks have stayed where they are for
// some periods is left alone, until one moves again. A layer passes for a period until the whole
// step has come twice, which says nothing where none has moved so far.
uint64_t PlacementPlan::QuietPatience(uint32_t period) const {
  const bool is_layer = period < kShortest && (moved_ == 0 || quiet_since_ < watched_since_);
  if (state_ != State::kWatching || period == 0 || is_layer) return 2 * uint64_t{kLog};
  return std::max<uint64_t>(8 * uint64_t{period}, kLog / 4);
}

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
  if (!Collect(period)) return false;
  as_is_at_ = requests_ + uint64_t{period} * kFirstPatienceAsIs;  // if it is none
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
  in_place_ = false;
  as_is_followed_ = 0;
  waits_since_ = requests_;
  ++plans_;
  Accept();
  return true;
}

// The job may do something else meanwhile, but not for long; and where chunks move, places are to
// be found that keep them from it.
void PlacementPlan::WatchAsIs() {
  const bool long_ago = requests_ - waits_since_ > uint64_t{kWaitAsIs} * plan_.size();
  if (long_ago || quiet_since_ > waits_since_) DropAsIs();
}

// One that broke before it was worth its work, as where threads take turns, is not sought again for
// some time, each time for longer.
void PlacementPlan::DropAsIs() {
  if (!as_is_ || state_ < State::kWaiting) return;
  StopFollowing(State::kWatching);
  in_step_ = false;
  broken_ = 0;
  as_is_ = false;
  watched_since_ = requests_;
  as_is_at_ = 0;
  if (as_is_followed_ >= kWorthAsIs) {
    as_is_patience_ = 0;
    return;
  }
  Rest(static_cast<uint32_t>(plan_.size()), kFirstPatienceAsIs);
}

// Nothing is watched for `patience` periods, or for twice as many as the last time, unless chunks
// move; where they do, no such plan is made for so long. 0: no period is known.
void PlacementPlan::Rest(uint32_t period, uint32_t patience) {
  as_is_patience_ = std::clamp(2 * as_is_patience_, patience, kMostPatienceAsIs);
  const uint64_t rest = period == 0 ? kLookEvery : uint64_t{as_is_patience_} * period;
  if (requests_ - quiet_since_ < period) {
    as_is_at_ = requests_ + rest;
  } else {
    until_look_ = static_cast<uint32_t>(std::min<uint64_t>(rest, kLookEvery));
    state_ = State::kOff;
  }
}

}  // namespace tidemark::core
