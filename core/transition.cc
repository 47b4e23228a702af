// Implementation of core/transition.h. Threads: as the header says.

#include "core/transition.h"

#include <algorithm>

namespace tidemark::core {

bool Transition::Begin(ChunkIndex chunks) {
  live_.Clear();
  changes_.Clear();
  return live_.Resize(chunks, 0);
}

uint64_t Transition::MostInUse() {
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.when < b.when; });
  auto used = static_cast<int64_t>(
      std::count_if(live_.begin(), live_.end(), [](uint32_t live) { return live != 0; }));
  int64_t most = used;
  for (const Change& change : changes_) {
    used += Apply(change);
    most = std::max(most, used);
  }
  return static_cast<uint64_t>(most);
}

// By how many chunks more are in use.
int64_t Transition::Apply(const Change& change) {
  const bool begins = (change.when & 1) != 0;
  if (change.first == kElsewhere) return begins ? int64_t{change.last} : -int64_t{change.last};
  int64_t more = 0;
  for (ChunkIndex i = change.first; i <= change.last; ++i) {
    if (begins) {
      if (live_[i]++ == 0) ++more;
    } else if (live_[i] != 0 && --live_[i] == 0) {
      --more;
    }
  }
  return more;
}

}  // namespace tidemark::core
