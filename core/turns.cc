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

}  // namespace

void Turns::Clear() {
  groups_.Clear();
  occupants_.Clear();
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
  return true;
}

// Of one size: as many places as requests, and as those that are alive twice at once.
bool Turns::AddGroup(const uint64_t* first, const uint64_t* end, Array<Recurring>* period) {
  const auto number = static_cast<uint32_t>(groups_.size());
  Group group;
  group.units = Mark::Units(*first);
  group.count = static_cast<uint32_t>(end - first) / 2 + MostTwice(first, end);
  group.first = static_cast<uint32_t>(occupants_.size());
  group.place = static_cast<uint32_t>(std::min<uint64_t>(units_, Recurring::kNowhere));
  units_ += uint64_t{group.count} * group.units;
  for (const uint64_t* mark = first; mark != end; ++mark) {
    if ((*mark & Mark::kBegins) != 0) (*period)[Mark::At(*mark)].place = number;
  }
  return groups_.Append(group) && occupants_.Resize(group.first + group.count, 0);
}

}  // namespace tidemark::core
