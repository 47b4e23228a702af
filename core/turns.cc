// Implementation of core/turns.h. Threads: as the header says.

#include "core/turns.h"

#include <algorithm>

namespace tidemark::core {
namespace {

// A time at which a request begins or ends to be alive twice. Values sort by size, then by time;
// ends come before begins.
struct Mark {
  static constexpr uint64_t kWraps = 1;  // an end of what began in the period before
  static constexpr uint64_t kBegins = 2;
  static uint64_t Of(uint32_t units, uint32_t at, uint64_t flags) {
    return uint64_t{units} << 32 | uint64_t{at} << 2 | flags;
  }
  static uint32_t Units(uint64_t mark) { return static_cast<uint32_t>(mark >> 32); }
  static uint32_t At(uint64_t mark) { return static_cast<uint32_t>(mark) >> 2; }
};

// The most requests that are alive twice at once.
uint32_t MostTwice(const uint64_t* first, const uint64_t* end) {
  int64_t twice = std::count_if(first, end, [](uint64_t m) { return (m & Mark::kWraps) != 0; });
  int64_t most = twice;
  for (const uint64_t* mark = first; mark != end; ++mark) {
    twice += (*mark & Mark::kBegins) != 0 ? 1 : -1;
    most = std::max(most, twice);
  }
  return static_cast<uint32_t>(most);
}

// The longest stretch of the period in which fewer than `level` requests, which is at most
// MostTwice(), are alive twice.
Berth LongestBelow(uint32_t level, const uint64_t* first, const uint64_t* end, uint32_t period) {
  Berth longest = {Mark::Units(*first), 0, 0};
  int64_t twice = std::count_if(first, end, [](uint64_t m) { return (m & Mark::kWraps) != 0; });
  bool known = false;  // where the stretch began
  uint32_t from = 0;
  for (uint32_t lap = 0; lap < 2; ++lap) {
    for (const uint64_t* mark = first; mark != end; ++mark) {
      const uint32_t at = Mark::At(*mark) + lap * period;
      const bool begins = (*mark & Mark::kBegins) != 0;
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
  groups_.Clear();
  turns_.Clear();
  berths_.Clear();
  stays_.Clear();
  units_ = 0;
}

bool Turns::Collect(Array<Recurring>* period) {
  const auto length = static_cast<uint32_t>(period->size());
  Clear();
  marks_.Clear();
  for (uint32_t i = 0; i < length; ++i) {
    const Recurring& request = (*period)[i];
    if (request.life <= length) continue;
    const uint32_t until = i + request.life - length;
    const uint64_t wraps = until >= length ? Mark::kWraps : 0;
    if (!marks_.Append(Mark::Of(request.units, i, Mark::kBegins))) return false;
    if (!marks_.Append(Mark::Of(request.units, until % length, wraps))) return false;
  }
  std::sort(marks_.begin(), marks_.end());
  const uint64_t* first = marks_.begin();
  while (first != marks_.end()) {
    const uint32_t units = Mark::Units(*first);
    const uint64_t* end = first;
    while (end != marks_.end() && Mark::Units(*end) == units) ++end;
    if (!AddGroup(first, end, period)) return false;
    first = end;
  }
  return AddBerths(length);
}

// Of one size: as many places as requests, and as those that are alive twice at once.
bool Turns::AddGroup(const uint64_t* first, const uint64_t* end, Array<Recurring>* period) {
  const auto number = static_cast<uint32_t>(groups_.size());
  Group group;
  group.units = Mark::Units(*first);
  group.count = static_cast<uint32_t>(end - first) / 2 + MostTwice(first, end);
  group.first = static_cast<uint32_t>(turns_.size());
  for (uint32_t i = 0; i < group.count; ++i) {
    const auto place = static_cast<uint32_t>(std::min<uint64_t>(units_, Recurring::kNowhere));
    if (!turns_.Append({place, 0})) return false;
    units_ += group.units;
  }
  for (const uint64_t* mark = first; mark != end; ++mark) {
    if ((*mark & Mark::kBegins) != 0) (*period)[Mark::At(*mark)].place = number;
  }
  return groups_.Append(group);
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

// The largest first.
bool Turns::AddBerths(uint32_t period) {
  auto group = static_cast<uint32_t>(groups_.size());
  const uint64_t* first = marks_.end();
  while (first != marks_.begin()) {
    const uint64_t* end = first;
    const uint32_t units = Mark::Units(end[-1]);
    while (first != marks_.begin() && Mark::Units(first[-1]) == units) --first;
    --group;
    for (uint32_t level = MostTwice(first, end); level > 0; --level) {
      if (berths_.size() == Packing::kMostBerths) return true;
      if (!berths_.Append(LongestBelow(level, first, end, period))) return false;
      if (!stays_.Append({group, kNoTurn, 0, 0})) return false;
    }
  }
  return true;
}

}  // namespace tidemark::core
