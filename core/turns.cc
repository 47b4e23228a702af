// Implementation of core/turns.h. Threads: as the header says.

#include "core/turns.h"

#include <algorithm>

#include "core/turn_mark.h"

namespace tidemark::core {
namespace {

// The most requests that are alive twice at once.
uint32_t MostTwice(const uint64_t* first, const uint64_t* end) {
  int64_t twice = std::count_if(first, end, [](uint64_t m) { return (m & TurnMark::kWraps) != 0; });
  int64_t most = twice;
  for (const uint64_t* mark = first; mark != end; ++mark) {
    twice += (*mark & TurnMark::kBegins) != 0 ? 1 : -1;
    most = std::max(most, twice);
  }
  return static_cast<uint32_t>(most);
}

// The longest stretch of the period in which fewer than `level` requests, which is at most
// MostTwice(), are alive twice.
Berth LongestBelow(uint32_t level, const uint64_t* first, const uint64_t* end, uint32_t period) {
  Berth longest = {TurnMark::Units(*first), 0, 0};
  int64_t twice = std::count_if(first, end, [](uint64_t m) { return (m & TurnMark::kWraps) != 0; });
  bool known = false;  // where the stretch began
  uint32_t from = 0;
  for (uint32_t lap = 0; lap < 2; ++lap) {
    for (const uint64_t* mark = first; mark != end; ++mark) {
      const uint32_t at = TurnMark::At(*mark) + lap * period;
      const bool begins = (*mark & TurnMark::kBegins) != 0;
      const bool was_below = twice < level;
      twice += begins ? 1 : -1;
      if (was_below && twice >= level && known && at - from > longest.length) {
        longest.from = from % period;
        longest.length = at - from;
      } else if (!was_below && twice < level) {
        from = at;
        known = true;
      }
    }
  }
  return longest;
}

}  // namespace

void Turns::Clear() {
  sizes_.Clear();
  groups_.Clear();
  turns_.Clear();
  berths_.Clear();
  stays_.Clear();
  units_ = 0;
  in_strips_ = 0;
}

bool Turns::CopyFrom(const Turns& other) {
  units_ = other.units_;
  in_strips_ = other.in_strips_;
  return groups_.CopyFrom(other.groups_) && turns_.CopyFrom(other.turns_) &&
         stays_.CopyFrom(other.stays_);
}

bool Turns::Collect(Array<Recurring>* period) {
  Clear();
  if (!FindSizes(*period)) return false;
  for (const Size& size : sizes_) {
    if (!AddGroup(size, 0, 0, period)) return false;
  }
  return AddBerths(static_cast<uint32_t>(period->size()));
}

bool Turns::FindSizes(const Array<Recurring>& period) {
  const auto length = static_cast<uint32_t>(period.size());
  marks_.Clear();
  for (uint32_t i = 0; i < length; ++i) {
    const Recurring& request = period[i];
    if (request.life <= length) continue;
    const uint32_t until = i + request.life - length;
    const uint64_t wraps = until >= length ? TurnMark::kWraps : 0;
    if (!marks_.Append(TurnMark::Of(request.units, i, TurnMark::kBegins))) return false;
    if (!marks_.Append(TurnMark::Of(request.units, until % length, wraps))) return false;
  }
  std::sort(marks_.begin(), marks_.end());
  uint32_t end = 0;
  while (end < marks_.size()) {
    Size size;
    size.first = end;
    size.units = TurnMark::Units(marks_[end]);
    while (end < marks_.size() && TurnMark::Units(marks_[end]) == size.units) ++end;
    size.end = end;
    size.twice = MostTwice(marks_.begin() + size.first, marks_.begin() + size.end);
    if (!sizes_.Append(size)) return false;
  }
  return true;
}

// Of those that are left when the first `skipped` from request `from` on have their places: as many
// places as requests, and as those that are alive twice at once.
bool Turns::AddGroup(const Size& size, uint32_t from, uint32_t skipped, Array<Recurring>* period) {
  const uint32_t count = size.requests() - skipped;
  if (count == 0) return true;
  Group group;
  group.units = size.units;
  group.count = count + size.twice;
  group.first = static_cast<uint32_t>(turns_.size());
  for (uint32_t i = 0; i < group.count; ++i) {
    if (!AddTurn(units_)) return false;
    units_ += group.units;
  }
  Join(static_cast<uint32_t>(groups_.size()), size, from, skipped, count, period);
  return groups_.Append(group);
}

bool Turns::AddTurn(uint64_t place) {
  return turns_.Append({static_cast<uint32_t>(std::min<uint64_t>(place, Recurring::kNowhere)), 0});
}

// `count` requests of the size, after the first `skipped` from request `from` on.
void Turns::Join(uint32_t group, const Size& size, uint32_t from, uint32_t skipped, uint32_t count,
                 Array<Recurring>* period) const {
  uint32_t seen = 0;
  for (const bool before : {false, true}) {
    for (uint32_t m = size.first; m < size.end; ++m) {
      const uint32_t at = TurnMark::At(marks_[m]);
      if ((marks_[m] & TurnMark::kBegins) == 0 || (at < from) != before) continue;
      if (seen >= skipped && seen < skipped + count) (*period)[at].place = group;
      ++seen;
    }
  }
}

void Turns::Unplace() {
  for (Turn& turn : turns_) turn.place = Recurring::kNowhere;
}

bool Turns::PutAt(uint32_t place, uint32_t group, uint32_t occupant) {
  const Group& g = groups_[group];
  for (uint32_t i = g.first; i < g.first + g.count; ++i) {
    if (turns_[i].place != Recurring::kNowhere) continue;
    turns_[i] = {place, occupant};
    return true;
  }
  return false;
}

uint32_t* Turns::Unplaced(uint32_t* units) {
  for (size_t group = groups_.size(); group-- > 0;) {
    const Group& g = groups_[group];
    for (uint32_t i = g.first; i < g.first + g.count; ++i) {
      if (turns_[i].place != Recurring::kNowhere) continue;
      *units = g.units;
      return &turns_[i].place;
    }
  }
  return nullptr;
}

void Turns::Sort(uint32_t now) {
  const auto age = [now](const Turn& turn) {
    return turn.occupant == 0 ? ~0u : now - turn.occupant;
  };
  for (const Group& g : groups_) {
    Turn* first = turns_.begin() + g.first;
    std::sort(first, first + g.count,
              [&](const Turn& a, const Turn& b) { return age(a) > age(b); });
  }
}

// Of the largest first.
bool Turns::AddBerths(uint32_t period) {
  auto group = static_cast<uint32_t>(groups_.size());
  for (size_t i = sizes_.size(); i-- > 0;) {
    const Size& size = sizes_[i];
    if (group == in_strips_ || groups_[group - 1].units != size.units) continue;
    --group;
    for (uint32_t level = size.twice; level > 0; --level) {
      if (berths_.size() == Packing::kMostBerths) return true;
      const Berth longest =
          LongestBelow(level, marks_.begin() + size.first, marks_.begin() + size.end, period);
      if (!AddBerth(longest, group)) return false;
    }
  }
  return true;
}

bool Turns::AddBerth(const Berth& berth, uint32_t group) {
  return berths_.Append(berth) && stays_.Append({group, kNoTurn, 0, 0});
}

}  // namespace tidemark::core
