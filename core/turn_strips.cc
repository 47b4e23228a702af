// The part of core/turns.h about strips. State of several sizes that is made anew piece by piece
// needs a few places more of each size, but not at the same time, and not when the packed requests
// need the most. Side by side they would hold a request of any size then. Each size goes round its
// places in order, and by as many in each period as it has requests; where all have as many strips
// of them, the free ones of all sizes are in the same strip again. Sizes of which there are more
// than fill the strips have places of their own for the others. Threads: none of its own.

#include <algorithm>

#include "core/turn_mark.h"
#include "core/turns.h"

namespace tidemark::core {
namespace {

constexpr size_t kMostSizes = 64;  // that are thought of

}  // namespace

bool Turns::CollectInStrips(Array<Recurring>* period, uint32_t peak) {
  const auto length = static_cast<uint32_t>(period->size());
  Clear();
  if (!FindSizes(*period)) return false;
  const uint32_t strips = ChooseStrips(*period, peak);
  if (strips == 0) return false;
  Berth berth = BerthAt(peak, length);
  if (!AddStrips(strips, berth.from, period)) return false;
  berth.units = static_cast<uint32_t>(units_ / (strips + 1));
  if (!AddBerth(berth, 0)) return false;
  for (const Size& size : sizes_) {
    if (!AddGroup(size, berth.from, strips * size.in_strip, period)) return false;
  }
  return AddBerths(length);
}

// Not alive twice when the most is needed, and each is over when the one comes that follows it in
// its place.
bool Turns::FitsStrips(const Size& size, const Array<Recurring>& period, uint32_t peak) const {
  const auto length = static_cast<uint32_t>(period.size());
  Array<uint32_t> begins;
  for (uint32_t m = size.first; m < size.end; ++m) {
    const bool begin = (marks_[m] & TurnMark::kBegins) != 0;
    if (begin && !begins.Append(TurnMark::At(marks_[m]))) return false;
  }
  const auto count = static_cast<uint32_t>(begins.size());
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t twice = period[begins[i]].life - length;
    const uint32_t next = i + size.twice;
    const uint32_t heir = begins[next % count] + next / count * length;
    if ((peak + length - begins[i]) % length < twice || begins[i] + twice > heir) return false;
  }
  return true;
}

// How many strips hold the requests of some sizes, their in_strip; 0: none are worth it. Of sizes
// with the most requests to a place in the strip, as many as make the strip larger by more than is
// needed for what is left of them.
uint32_t Turns::ChooseStrips(const Array<Recurring>& period, uint32_t peak) {
  Array<uint32_t> fit;
  for (uint32_t i = 0; i < sizes_.size(); ++i) {
    if (FitsStrips(sizes_[i], period, peak) && !fit.Append(i)) return 0;
  }
  const auto strips_of = [&](uint32_t i) { return sizes_[i].requests() / sizes_[i].twice; };
  std::sort(fit.begin(), fit.end(), [&](uint32_t a, uint32_t b) {
    return strips_of(a) != strips_of(b) ? strips_of(a) > strips_of(b) : a > b;
  });
  uint64_t best = 0;
  size_t chosen = 0;
  for (size_t last = 0; last < std::min(fit.size(), kMostSizes); ++last) {
    const uint32_t strips = strips_of(fit[last]);
    uint64_t strip = 0;
    uint64_t twice = 0;
    for (size_t i = 0; i <= last; ++i) {
      const Size& size = sizes_[fit[i]];
      const uint64_t units = uint64_t{size.twice} * size.units;
      strip += units;
      if (size.requests() > strips * size.twice) twice += units;
    }
    if (strip > twice + best && strip < Recurring::kNowhere)
      best = strip - twice, chosen = last + 1;
  }
  for (size_t i = 0; i < chosen; ++i) sizes_[fit[i]].in_strip = sizes_[fit[i]].twice;
  return chosen == 0 ? 0 : strips_of(fit[chosen - 1]);
}

// The stretch around `peak` in which none that has places in strips is alive twice.
Berth Turns::BerthAt(uint32_t peak, uint32_t period) const {
  uint32_t before = period;
  uint32_t after = period;
  for (const Size& size : sizes_) {
    for (uint32_t m = size.first; size.in_strip != 0 && m < size.end; ++m) {
      const uint32_t at = TurnMark::At(marks_[m]);
      const bool begins = (marks_[m] & TurnMark::kBegins) != 0;
      uint32_t& least = begins ? after : before;
      least = std::min(least, (begins ? at + period - peak : peak + period - at) % period);
    }
  }
  return {0, (peak + period - before) % period, before + after};
}

// One strip more than are held. In it the largest come first.
bool Turns::AddStrips(uint32_t strips, uint32_t from, Array<Recurring>* period) {
  uint64_t strip = 0;
  for (const Size& size : sizes_) strip += uint64_t{size.in_strip} * size.units;
  uint64_t begin = 0;
  for (size_t i = sizes_.size(); i-- > 0;) {
    const Size& size = sizes_[i];
    if (size.in_strip == 0) continue;
    const auto count = (strips + 1) * size.in_strip;
    const auto first = static_cast<uint32_t>(turns_.size());
    for (uint32_t j = 0; j < count; ++j) {
      const uint64_t place =
          j / size.in_strip * strip + begin + uint64_t{j % size.in_strip} * size.units;
      if (!AddTurn(place)) return false;
    }
    Join(static_cast<uint32_t>(groups_.size()), size, from, 0, strips * size.in_strip, period);
    if (!groups_.Append({size.units, count, first, 0, size.in_strip})) return false;
    begin += uint64_t{size.in_strip} * size.units;
  }
  in_strips_ = static_cast<uint32_t>(groups_.size());
  units_ = (strips + 1) * strip;
  return true;
}

// Strip 0 is to be whole when the berth begins.
void Turns::BeginStrips(const Array<Recurring>& period, uint32_t cut) {
  const auto length = static_cast<uint32_t>(period.size());
  const uint32_t until = (berths_[0].from + length - cut) % length;
  for (uint32_t group = 0; group < in_strips_; ++group) groups_[group].next = 0;
  for (uint32_t i = until; i-- > 0;) {
    const Recurring& request = period[(cut + i) % length];
    if (request.life <= length || request.place >= in_strips_) continue;
    Group& g = groups_[request.place];
    g.next = (g.next == 0 ? g.count : g.next) - 1;
  }
}

void Turns::SkipStrip() {
  for (uint32_t group = 0; group < in_strips_; ++group) {
    Group& g = groups_[group];
    g.next = (g.next + g.in_strip) % g.count;
  }
}

void Turns::Occupy(const Stay& stay) {
  turns_[stay.turn].occupant = stay.last;
  if (groups_[stay.group].in_strip == 0) return;
  const uint32_t strip = (stay.turn - groups_[stay.group].first) / groups_[stay.group].in_strip;
  for (uint32_t group = 0; group < in_strips_; ++group) {
    const Group& g = groups_[group];
    for (uint32_t i = 0; i < g.in_strip; ++i) {
      turns_[g.first + strip * g.in_strip + i].occupant = stay.last;
    }
  }
}

}  // namespace tidemark::core
