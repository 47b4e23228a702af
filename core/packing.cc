// Implementation of core/packing.h. Threads: as the header says.

#include "core/packing.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tidemark::core {
namespace {

constexpr uint64_t kMostUnits = Recurring::kNowhere - 1;

// In a period that recurs, two lives of less than a period each overlap where one begins in the
// other.
bool Meet(uint32_t born, uint32_t life, uint32_t other_born, uint32_t other_life, uint32_t period) {
  const uint32_t after = other_born >= born ? other_born - born : other_born + period - born;
  const uint32_t before = after == 0 ? 0 : period - after;
  return after < life || before < other_life;
}

}  // namespace

const Packing::Attempt Packing::kAttempt[kAttempts] = {{Order::kSize, true, 16, 0},
                                                       {Order::kPeakLifeElseSize, true, 16, 0},
                                                       {Order::kSize, true, 0, 0},
                                                       {Order::kPeakLifeElseSize, true, 0, 0},
                                                       {Order::kPeakLife, false, 0, 0},
                                                       {Order::kSizeClassLife, true, 0, 0},
                                                       {Order::kPeakLifeElseSize, false, 0, 0},
                                                       {Order::kLongElseLife, true, 0, 128}};

bool Packing::Init() {
  return order_.Reserve(kMost) && placed_.Reserve(kMost + kMostTaken + 2 * kMostBerths) &&
         keys_.Reserve(kMost) && places_.Reserve(kMost);
}

bool Packing::Look(const Array<Recurring>* requests) {
  requests_ = requests;
  period_ = static_cast<uint32_t>(requests->size());
  order_.Clear();
  for (uint32_t i = 0; i < period_; ++i) {
    if (Packs(i) && !order_.Append(i)) return false;
  }
  one_stream_ = std::all_of(order_.begin(), order_.end(), [this](uint32_t i) {
    return At(i).stream != kAnyStream && At(i).stream == At(order_[0]).stream;
  });
  if (order_.empty() || !keys_.Resize(period_) || !places_.Resize(period_)) return false;
  FindExtremes();
  return true;
}

bool Packing::Start(const Array<Recurring>* requests, const Room& room) {
  if (!Look(requests)) return false;
  room_ = std::min(room.units, kMostUnits);
  taken_ = room.taken;
  berths_ = room.berths;
  if (taken_ != nullptr && taken_->size() > kMostTaken) return false;
  uint64_t needed = floor_;
  for (size_t i = 0; taken_ != nullptr && i < taken_->size(); ++i) needed += (*taken_)[i].units;
  BeginAttempts(false);
  if (needed <= limit_) return true;
  if (berths_ == nullptr) return false;
  BeginAttempts(true);
  return needed <= limit_;
}

void Packing::BeginAttempts(bool with_berths) {
  with_berths_ = with_berths;
  limit_ = room_;
  for (uint32_t i = 0; i < berths(); ++i) limit_ += 1 + (*berths_)[i].units;
  if (limit_ > kMostUnits) with_berths_ = false, limit_ = room_;
  attempt_ = 0;
  while (one_stream_ && kAttempt[attempt_].apart != 0) ++attempt_;  // the others do the same
  BeginAttempt();
}

// Where the most and the fewest units are alive, found by what changes at each request.
void Packing::FindExtremes() {
  uint64_t alive = 0;
  for (uint64_t& change : keys_) change = 0;
  for (const uint32_t i : order_) {
    const uint32_t end = i + At(i).life;
    keys_[i] += At(i).units;
    keys_[end % period_] -= At(i).units;  // wraps around, as does the sum
    if (end >= period_) alive += At(i).units;
  }
  floor_ = 0;
  uint64_t least = ~uint64_t{0};
  for (uint32_t i = 0; i < period_; ++i) {
    alive += keys_[i];
    const uint64_t before = Packs(i) ? alive - At(i).units : alive;
    if (alive > floor_) floor_ = alive, peak_at_ = i;
    if (before < least) least = before, quiet_at_ = i;
  }
}

bool Packing::AtPeak(uint32_t request) const {
  return Meet(request, At(request).life, peak_at_, 1, period_);
}

// Greater comes first.
uint64_t Packing::KeyOf(uint32_t request, Order order) const {
  const Recurring& r = At(request);
  const uint64_t first = AtPeak(request) ? uint64_t{1} << 63 : 0;
  switch (order) {
    case Order::kPeakLifeElseSize:
      return first | (first != 0 ? r.life : r.units);
    case Order::kSize:
      return r.units;
    case Order::kLongElseLife: {
      const auto bits = static_cast<uint32_t>(std::bit_width(r.units));
      if (r.life > period_ / 2) return uint64_t{1} << 63 | (period_ - request);
      return uint64_t{r.life} * bits * bits * bits;
    }
    case Order::kPeakLife:
      return first | r.life;
    case Order::kSizeClassLife:
      return uint64_t{static_cast<uint32_t>(std::bit_width(r.units))} << 32 | r.life;
  }
  return 0;
}

void Packing::BeginAttempt() {
  for (const uint32_t i : order_) keys_[i] = KeyOf(i, kAttempt[attempt_].order);
  std::sort(order_.begin(), order_.end(), [this](uint32_t a, uint32_t b) {
    return keys_[a] != keys_[b] ? keys_[a] > keys_[b] : a < b;
  });
  repairs_ = kAttempt[attempt_].repairs;
  Restart();
}

void Packing::Restart() {
  placed_.Clear();
  top_ = 0;
  next_ = 0;
  for (size_t i = 0; taken_ != nullptr && i < taken_->size(); ++i) {
    Bar((*taken_)[i].place, (*taken_)[i].units, 0, period_);
  }
  uint64_t end = room_;
  for (uint32_t i = 0; i < berths(); ++i) {
    const Berth& berth = (*berths_)[i];
    Bar(end, 1, 0, period_);
    Bar(end + 1, berth.units, (berth.from + berth.length) % period_, period_ - berth.length);
    end += 1 + berth.units;
  }
}

// Nobody gets these units for `life` requests. They lie above those before.
void Packing::Bar(uint64_t place, uint32_t units, uint32_t born, uint32_t life) {
  const auto first = static_cast<uint32_t>(place);
  if (life != 0) (void)placed_.Append({first, first + units, born, life, kAnyStream});
}

// The request that found no room comes earlier, or another order is tried, or all of them once more
// with berths. False: nothing is left.
bool Packing::TryAgain() {
  if (repairs_ == 0) {
    if (++attempt_ < kAttempts) {
      BeginAttempt();
    } else if (!with_berths_ && berths_ != nullptr && !berths_->empty()) {
      BeginAttempts(true);
    }
    return attempt_ < kAttempts;
  }
  --repairs_;
  const uint32_t failed = next_ - 1;
  std::rotate(order_.begin() + failed / 2, order_.begin() + failed, order_.begin() + next_);
  Restart();
  return true;
}

bool Packing::Work(uint32_t looks) {
  uint64_t looked = 0;
  while (found() && next_ < order_.size()) {
    if (looked > looks) return false;
    const uint32_t request = order_[next_++];
    const uint64_t place = GapFor(request, kAttempt[attempt_], &looked);
    if (place + At(request).units <= limit_) {
      Place(request, static_cast<uint32_t>(place));
    } else if (!TryAgain()) {
      break;
    }
  }
  return true;
}

uint64_t Packing::GapFor(uint32_t request, const Attempt& attempt, uint64_t* looked) const {
  const Recurring& wanted = At(request);
  uint64_t best = 0;
  uint64_t best_gap = ~uint64_t{0};
  uint64_t reached = 0;
  ++*looked;
  for (const Placed& p : placed_) {
    ++*looked;
    const bool same = p.stream == wanted.stream && p.stream != kAnyStream;
    const uint32_t apart = same ? 0 : attempt.apart;
    if (!Meet(p.born, p.life + apart, request, wanted.life + apart, period_)) continue;
    if (p.place > reached) {
      const uint64_t gap = p.place - reached;
      if (gap == wanted.units || (gap > wanted.units && attempt.lowest)) return reached;
      if (gap > wanted.units && gap < best_gap) best = reached, best_gap = gap;
    }
    reached = std::max<uint64_t>(reached, p.end);
  }
  return best_gap == ~uint64_t{0} ? reached : best;
}

void Packing::Place(uint32_t request, uint32_t place) {
  const Placed placed = {place, place + At(request).units, request, At(request).life,
                         At(request).stream};
  places_[request] = place;
  if (placed.end <= room_) top_ = std::max<uint64_t>(top_, placed.end);
  (void)placed_.Append(placed);  // room for kMost is there
  Placed* const last = placed_.end() - 1;
  Placed* const at =
      std::upper_bound(placed_.begin(), last, placed,
                       [](const Placed& a, const Placed& b) { return a.place < b.place; });
  std::move_backward(at, last, placed_.end());
  *at = placed;
}

void Packing::WritePlaces(Array<Recurring>* requests) const {
  for (const uint32_t i : order_) {
    Recurring& request = (*requests)[i];
    request.place = places_[i];
    uint64_t begin = room_ + 1;
    for (uint32_t b = 0; b < berths() && places_[i] >= begin; ++b) {
      request.berth = b + 1;
      request.place = static_cast<uint32_t>(places_[i] - begin);
      begin += 1 + (*berths_)[b].units;
    }
  }
}

}  // namespace tidemark::core
