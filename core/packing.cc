// Implementation of core/packing.h. Threads: as the header says.

#include "core/packing.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace tidemark::core {
namespace {

constexpr uint64_t kMostUnits = Recurring::kNowhere;

// In a period that recurs, two lives of less than a period each overlap where one begins in the
// other.
bool Meet(uint32_t born, uint32_t life, uint32_t other_born, uint32_t other_life, uint32_t period) {
  const uint32_t after = other_born >= born ? other_born - born : other_born + period - born;
  const uint32_t before = after == 0 ? 0 : period - after;
  return after < life || before < other_life;
}

}  // namespace

const Packing::Attempt Packing::kAttempts[] = {{Order::kSize, true, 16},
                                               {Order::kPeakLifeElseSize, true, 16},
                                               {Order::kSize, true, 0},
                                               {Order::kPeakLifeElseSize, true, 0},
                                               {Order::kPeakLife, false, 0},
                                               {Order::kSizeClassLife, true, 0},
                                               {Order::kPeakLifeElseSize, false, 0}};

bool Packing::Init() {
  return order_.Reserve(kMost) && placed_.Reserve(kMost) && keys_.Reserve(kMost) &&
         places_.Reserve(kMost) && best_.Reserve(kMost);
}

bool Packing::Start(const Array<Recurring>* requests, uint64_t room) {
  requests_ = requests;
  room_ = room;
  period_ = static_cast<uint32_t>(requests->size());
  order_.Clear();
  for (uint32_t i = 0; i < period_; ++i) {
    if (At(i).life != 0 && !order_.Append(i)) return false;
  }
  one_stream_ = std::all_of(order_.begin(), order_.end(),
                            [this](uint32_t i) { return At(i).stream == At(order_[0]).stream; });
  if (order_.empty() || !keys_.Resize(period_) || !places_.Resize(period_) ||
      !best_.Resize(period_)) {
    return false;
  }
  FindExtremes();
  if (floor_ > room_) return false;
  best_top_ = kMostUnits;
  attempt_ = 0;
  while (one_stream_ && kAttempts[attempt_].apart != 0) ++attempt_;  // the others do the same
  BeginAttempt();
  return true;
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
    const uint64_t before = At(i).life == 0 ? alive : alive - At(i).units;
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
    case Order::kPeakLife:
      return first | r.life;
    case Order::kSizeClassLife:
      return uint64_t{static_cast<uint32_t>(std::bit_width(r.units))} << 32 | r.life;
  }
  return 0;
}

void Packing::BeginAttempt() {
  for (const uint32_t i : order_) keys_[i] = KeyOf(i, kAttempts[attempt_].order);
  std::sort(order_.begin(), order_.end(), [this](uint32_t a, uint32_t b) {
    return keys_[a] != keys_[b] ? keys_[a] > keys_[b] : a < b;
  });
  placed_.Clear();
  top_ = 0;
  next_ = 0;
}

void Packing::EndAttempt() {
  if (top_ < best_top_) {
    best_top_ = top_;
    std::swap(best_, places_);
  }
  ++attempt_;
  if (best_top_ <= room_) attempt_ = std::size(kAttempts);
}

bool Packing::Work(uint32_t looks) {
  while (attempt_ < std::size(kAttempts)) {
    if (next_ == order_.size() || top_ >= best_top_) {
      EndAttempt();
      if (attempt_ < std::size(kAttempts)) BeginAttempt();
      continue;
    }
    if (looks < placed_.size()) return false;
    looks -= static_cast<uint32_t>(placed_.size()) + 1;
    const uint32_t request = order_[next_++];
    const uint64_t place = GapFor(request, kAttempts[attempt_]);
    top_ = std::max(top_, place + At(request).units);
    if (top_ < best_top_) Place(request, static_cast<uint32_t>(place));
  }
  return true;
}

uint64_t Packing::GapFor(uint32_t request, const Attempt& attempt) const {
  const Recurring& wanted = At(request);
  uint64_t best = 0;
  uint64_t best_gap = ~uint64_t{0};
  uint64_t reached = 0;
  for (const Placed& p : placed_) {
    const uint32_t apart = p.stream == wanted.stream ? 0 : attempt.apart;
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
  (void)placed_.Append(placed);  // room for kMost is there
  Placed* const last = placed_.end() - 1;
  Placed* const at =
      std::upper_bound(placed_.begin(), last, placed,
                       [](const Placed& a, const Placed& b) { return a.place < b.place; });
  std::move_backward(at, last, placed_.end());
  *at = placed;
}

void Packing::WritePlaces(Array<Recurring>* requests) const {
  for (const uint32_t i : order_) (*requests)[i].place = best_[i];
}

}  // namespace tidemark::core
