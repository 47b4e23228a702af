// Implementation of core/placement_plan.h. Threads: as the header says.

#include "core/placement_plan.h"

#include <algorithm>
#include <numeric>

#include "core/rolling_hash.h"

namespace tidemark::core {
namespace {

constexpr uint32_t kLooks = 16384;   // of the packing, for each request: 20 us
constexpr uint32_t kTransition = 3;  // periods in which chunks move to where the plan wants them
constexpr uint32_t kMostPostponed = 4;
constexpr uint32_t kMostBroken = 4;  // breaks in a row after which a plan is dropped
// Moving to the places of a plan costs about as many chunks as it has. It must pay for that within
// so many periods.
constexpr uint64_t kPaysWithin = 512;
constexpr uint32_t kFirstPatience = 8;  // periods
constexpr uint32_t kMostPatience = 1 << 12;
constexpr uint32_t kPatienceInVain = 64;  // periods
// Packing a plan in place takes about as long as it saves in so many periods.
constexpr uint32_t kWorthInPlace = 128;

}  // namespace

bool PlacementPlan::Start() {
  if (log_.empty()) {
    if (!plan_.Reserve(Period::kSigns / 2) || !packing_.Init() || !period_.Init()) return false;
    if (!log_.Resize(kLog)) return false;
  }
  state_ = State::kWatching;
  watched_since_ = requests_;
  return true;
}

Bytes PlacementPlan::Next(Bytes bytes, StreamId stream) {
  begins_ = false;
  if (in_step_ && (phase_ == cut_ || TakesOtherTurn())) BeginPeriod();
  Log(bytes, stream);
  KeepStep();
  if (state_ == State::kWatching || (state_ == State::kWaiting && !in_step_)) {
    Watch();
  } else if (state_ == State::kPacking && packing_.Work(kLooks)) {
    EndPacking();
  } else if (state_ == State::kFollowing && !in_step_) {
    Suspend();
  }
  return state_ == State::kFollowing ? PlaceOf(asked_) : kNowhere;
}

template <typename IsFree>
Bytes PlacementPlan::PlaceIn(Turns* turns, uint32_t phase, RequestNumber number,
                             const IsFree& is_free) const {
  const Recurring& planned = plan_[phase];
  if (planned.IsFixed(plan_.size())) return Bytes{planned.place} * kBlockBytes;
  if (planned.place == Recurring::kNowhere) return kNowhere;
  const uint32_t berth = planned.berth;
  const uint32_t place = berth == 0
                             ? turns->Take(planned.place, number, is_free)
                             : turns->TakeBerth(berth - 1, number, number + planned.life, is_free);
  if (place == Recurring::kNowhere) return kNowhere;
  return (turns_from() + place + (berth == 0 ? 0 : planned.place)) * kBlockBytes;
}

Bytes PlacementPlan::PlaceOf(uint32_t phase) {
  return PlaceIn(&turns_, phase, number(), [this](RequestNumber holder) { return IsOver(holder); });
}

Bytes PlacementPlan::PlaceAhead(uint32_t ahead) {
  if (ahead == 1 && !turns_ahead_.CopyFrom(turns_)) turns_ahead_.Clear();
  const auto phase = static_cast<uint32_t>((asked_ + ahead) % plan_.size());
  if (turns_ahead_.units() == 0 && !plan_[phase].IsFixed(plan_.size())) return kNowhere;
  const auto is_free = [&](RequestNumber holder) {
    const uint32_t after = holder - number();
    if (after > ahead) return IsOver(holder);  // it is there already
    return after + plan_[(asked_ + after) % plan_.size()].life <= ahead;
  };
  return PlaceIn(&turns_ahead_, phase, number() + ahead, is_free);
}

void PlacementPlan::Log(Bytes bytes, StreamId stream) {
  const uint64_t leaves = requests_ >= kContext ? SignOf(At(requests_ - kContext + 1)) : 0;
  ++requests_;
  Entry& entry = log_[requests_ % kLog];
  entry = {number(), UnitsOf(bytes), stream, 0, moved_, Recurring::kNowhere};
  logged_ = requests_;
  if (state_ == State::kFollowing) return;  // it is known what comes
  const uint64_t sign = SignOf(entry);
  context_ = Roll<kContext>(context_, sign, leaves);
  if (!WaitsAsIs()) period_.Add(sign);
}

// Nothing has moved since the last one. Those that are logged already may have ended since.
void PlacementPlan::CatchUp() {
  const uint64_t oldest = requests_ - std::min<uint64_t>(requests_, kLog);
  for (uint64_t r = std::max(logged_, oldest) + 1; r <= requests_; ++r) {
    if (At(r).number != static_cast<RequestNumber>(r)) LogPlanned(r);
  }
  logged_ = requests_;
}

// Of the plan. Whose turn it is, and where a berth is, depends on who is alive; the others end as
// planned.
void PlacementPlan::LogPlanned(uint64_t request) {
  const Recurring& planned = plan_[PhaseOf(request)];
  const bool moves = planned.life > plan_.size() || planned.berth != 0;
  const uint32_t life = moves ? 0 : planned.life;
  const auto number = static_cast<RequestNumber>(request);
  log_[request % kLog] = {number, planned.units, planned.stream, life, moved_, Recurring::kNowhere};
}

void PlacementPlan::Freed(RequestNumber freed) {
  if (log_.empty()) return;
  Entry& entry = log_[freed % kLog];
  if (entry.number == freed && entry.life == 0) entry.life = number() - freed + 1;
}

// A plan is worth its work where chunks were moved within the last period. One that waits gives way
// to a longer one, or when it was out of step for long.
void PlacementPlan::Watch() {
  if (WaitsAsIs()) return WatchAsIs();
  if (in_place_ && state_ == State::kWaiting) return Refuse();  // it was not packed yet
  const uint32_t period = period_.length();
  const uint64_t since = std::max(quiet_since_, watched_since_);
  if (requests_ - since > QuietPatience(period)) {
    Rest(period < kShortest ? 0 : period, kPatienceInVain);
  }
  if (period < kShortest || (MovedWithin(period) != 0 && requests_ < retry_at_)) return;
  if (MovedWithin(period) == 0) {
    if (state_ != State::kWatching || !(TakeAsIs(period) || SeekInPlace(period))) return;
  } else {
    const bool replaces = period > period_length_ || requests_ - begun_at_ > 4 * plan_.size();
    if ((state_ == State::kWaiting && !replaces) || !Collect(period)) return;
    as_is_ = in_place_ = false;
    state_ = State::kAsking;
  }
  begins_in_ = context_;
  begins_at_ = 0;
  begun_at_ = requests_;
  in_step_ = true;
  phase_ = 0;
  cut_ = in_place_ ? packing_.quiet_at() : 0;
  if (as_is_) FindBeginning();  // others are packed first, or never taken up again
}

// Of the last two periods: what was asked for, and the longer of the two lives. False: the log does
// not reach that far, or it is too much.
bool PlacementPlan::Collect(uint32_t period) {
  if (requests_ - watched_since_ < 2 * uint64_t{period} || period > Packing::kMost) return false;
  period_length_ = period;
  making_ = Making::kForOne;
  plan_.Clear();
  const uint64_t first = requests_ - 2 * uint64_t{period} + 1;
  for (uint64_t r = first; r < first + period; ++r) {
    const Entry& entry = At(r);
    const uint32_t life = LifeOf(r, period);
    if (!plan_.Append({entry.units, entry.stream, life, Recurring::kNowhere})) return false;
  }
  return turns_.Collect(&plan_);
}

// False: there is no other way, or no memory.
bool PlacementPlan::MakeOtherwise() {
  while (making_ != Making::kInMore) {
    making_ = static_cast<Making>(static_cast<uint8_t>(making_) + 1);
    const bool made =
        making_ == Making::kForTwo ? MakeForTwo() : MakeWithGuests(making_ == Making::kInStrips);
    if (made) return true;
  }
  return false;
}

// All of the plan once more, so that nothing takes turns. False: nothing does, or it is too much.
bool PlacementPlan::MakeForTwo() {
  const uint32_t period = period_length_;
  if (turns_.units() == 0 || 2 * period > Packing::kMost) return false;
  for (Recurring& request : plan_) request.place = Recurring::kNowhere;
  for (uint32_t i = 0; i < period; ++i) (void)plan_.Append(plan_[i]);
  begun_at_ = requests_ - phase_;
  turns_.Clear();
  return true;
}

// For one period again. False: nothing takes turns, or not in strips, or there is no memory.
bool PlacementPlan::MakeWithGuests(bool in_strips) {
  plan_.Shrink(period_length_);
  for (Recurring& request : plan_) request.place = Recurring::kNowhere, request.berth = 0;
  phase_ %= period_length_;
  begun_at_ = requests_ - phase_;
  if (!packing_.Look(&plan_)) return false;
  return in_strips ? turns_.CollectInStrips(&plan_, packing_.peak_at())
                   : turns_.Collect(&plan_) && turns_.units() != 0;
}

// The longer of the two lives that ended, else that of the period before. 0: not known to end
// within two periods.
uint32_t PlacementPlan::LifeOf(uint64_t request, uint32_t period) const {
  uint32_t life = std::max(At(request).life, At(request + period).life);
  const bool logged = request > period && requests_ - (request - period) < kLog;
  if (life == 0 && logged) life = At(request - period).life;
  return life <= 2 * period ? life : 0;
}

// What requests outside of the plan need beyond what they hold already: each of them is made anew
// before the old one is freed, so one more of each size; of all, where there is no memory to tell.
Bytes PlacementPlan::Spare() const {
  Array<uint32_t> sizes;
  Bytes all = 0;
  bool known = true;
  for (const Recurring& request : plan_) {
    if (request.life != 0) continue;
    all += request.units;
    known = known && sizes.Append(request.units);
  }
  if (!known) return all * kBlockBytes;
  std::sort(sizes.begin(), sizes.end());
  return std::accumulate(sizes.begin(), std::unique(sizes.begin(), sizes.end()), Bytes{0}) *
         kBlockBytes;
}

void PlacementPlan::Pack(Bytes room) {
  const Bytes spare = Spare();
  const Bytes apart = spare + turns_.units() * kBlockBytes;
  const Array<Berth>* berths = making_ >= Making::kWithGuests ? &turns_.berths() : nullptr;
  const bool starts =
      apart <= room && packing_.Start(&plan_, {(room - apart) / kBlockBytes, nullptr, berths});
  if (!starts && MakeOtherwise()) return;
  if (!starts) return Refuse();
  const uint64_t chunks = (packing_.floor() + turns_.units()) / (kChunkBytes / kBlockBytes);
  if (MovedWithin(plan_.size()) * kPaysWithin < chunks) return Refuse();
  state_ = State::kPacking;
}

void PlacementPlan::EndPacking() {
  if (!packing_.found()) {
    if (!MakeOtherwise()) return Refuse();
    state_ = State::kAsking;
    return;
  }
  packing_.WritePlaces(&plan_);
  top_ = packing_.top();
  ++plans_;
  cut_ = packing_.quiet_at();
  FindBeginning();
  state_ = State::kReady;
}

void PlacementPlan::Accept() {
  state_ = State::kWaiting;
  has_begun_ = false;
  postponed_ = 0;
}

void PlacementPlan::KeepStep() {
  if (in_step_) {
    asked_ = phase_;
    if (++phase_ == plan_.size()) phase_ = 0;
    const Recurring& planned = plan_[asked_];
    const Entry& entry = At(requests_);
    in_step_ = planned.units == entry.units && planned.stream == entry.stream;
  } else if (state_ == State::kWaiting && context_ == begins_in_) {
    in_step_ = true;
    begun_at_ = requests_ - begins_at_;
    phase_ = begins_at_;
  }
}

// A plan for two periods may be followed from either on: which one came first was by chance.
bool PlacementPlan::TakesOtherTurn() {
  if (state_ != State::kWaiting || phase_ % period_length_ != cut_ % period_length_) return false;
  begun_at_ = requests_ - cut_;
  phase_ = cut_;
  return true;
}

uint64_t PlacementPlan::MovedWithin(uint64_t requests) const {
  const uint64_t within = std::min({requests, requests_ - 1, uint64_t{kLog - 1}});
  return moved_ - At(requests_ - within).moved;
}

void PlacementPlan::BeginPeriod() {
  const bool follows = state_ == State::kFollowing;
  const uint64_t moved = follows ? moved_ - moved_before_ : MovedWithin(plan_.size());
  moved_before_ = moved_;
  if (state_ == State::kWaiting) {
    moved_unplanned_ = std::max(moved, has_begun_ ? moved_unplanned_ : 0);
    if (in_place_) {
      state_ = State::kAsking;
    } else {
      BeginFollowing();
    }
  } else if (state_ == State::kFollowing) {
    ++followed_;
    ++as_is_followed_;
    broken_ = 0;
    if (moved == 0 && !in_place_) patience_ = 0;
    if (moved == 0 && in_place_ && followed_ >= kWorthInPlace) in_place_patience_ = 0;
    if (followed_ > kTransition && moved != 0 && moved >= moved_unplanned_) Refuse();
  }
}

void PlacementPlan::BeginFollowing() {
  state_ = State::kFollowing;
  begins_ = !has_begun_;
  has_begun_ = true;
  turns_.TakeUp(plan_, cut_, [this](RequestNumber holder) { return IsOver(holder); });
  followed_ = 0;
}

void PlacementPlan::Refuse() {
  if (as_is_) return DropAsIs();
  uint32_t& patience = in_place_ ? in_place_patience_ : patience_;
  patience = patience == 0 ? kFirstPatience : std::min(2 * patience, kMostPatience);
  (in_place_ ? in_place_at_ : retry_at_) = requests_ + uint64_t{patience} * plan_.size();
  StopFollowing(State::kWatching);
  in_step_ = false;
  broken_ = 0;
}

// By the next period state may lie elsewhere, and less of it in the way.
void PlacementPlan::Postpone() {
  if (++postponed_ == kMostPostponed) return Refuse();
  StopFollowing(State::kWaiting);
  has_begun_ = begins_ = false;
}

// Context and period have not been kept up while following.
void PlacementPlan::StopFollowing(State state) {
  if (state_ == State::kFollowing) {
    CatchUp();
    watched_since_ = requests_;
    context_ = 0;
    for (uint64_t age = std::min<uint64_t>(kContext, requests_); age-- > 0;) {
      context_ = Roll<kContext>(context_, SignOf(At(requests_ - age)));
    }
  }
  state_ = state;
}

// What lives lies elsewhere by the time a plan in place could be taken up again.
void PlacementPlan::Suspend() {
  if (state_ != State::kFollowing) return;
  if (in_place_) return Refuse();
  StopFollowing(State::kWaiting);
  waits_since_ = requests_;
  if (followed_ == 0 && ++broken_ == kMostBroken) Refuse();
}

}  // namespace tidemark::core
