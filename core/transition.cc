// Implementation of core/transition.h. Threads: as the header says.

#include "core/transition.h"

#include <algorithm>

namespace tidemark::core {
namespace {

constexpr int64_t kUnits = kChunkBytes / kBlockBytes;  // in a chunk

}  // namespace

bool Transition::Begin(ChunkIndex chunks) {
  live_.Clear();
  changes_.Clear();
  return live_.Resize(chunks, 0);
}

Transition::InUse Transition::MostInUse() {
  std::sort(changes_.begin(), changes_.end(),
            [](const Change& a, const Change& b) { return a.when < b.when; });
  auto used = static_cast<int64_t>(
      std::count_if(live_.begin(), live_.end(), [](uint32_t live) { return live != 0; }));
  int64_t units = 0;   // elsewhere
  int64_t chunks = 0;  // the same at worst
  InUse most;
  const auto count = [&] {
    most.likely = std::max<uint64_t>(most.likely, used + (units + kUnits - 1) / kUnits);
    most.at_worst = std::max<uint64_t>(most.at_worst, used + chunks);
  };
  count();
  for (const Change& change : changes_) {
    if (change.first == kElsewhere) {
      const int64_t sign = (change.when & 1) != 0 ? 1 : -1;
      units += sign * change.last;
      chunks += sign * ((change.last + kUnits - 1) / kUnits + 1);
    } else {
      used += Apply(change);
    }
    count();
  }
  return most;
}

// By how many chunks more are in use.
int64_t Transition::Apply(const Change& change) {
  const bool begins = (change.when & 1) != 0;
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
