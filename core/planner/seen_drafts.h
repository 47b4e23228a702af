// Which drafts a search has tried: about every third change at random leads to one that it has.
// Remembers the last few thousand, by a hash. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_SEEN_DRAFTS_H_
#define TIDEMARK_CORE_PLANNER_SEEN_DRAFTS_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/draft.h"

namespace tidemark::core::planner {

class SeenDrafts {
 public:
  // Forgets all. False: no host memory.
  [[nodiscard]] bool Start() {
    hashes_.Clear();
    return hashes_.Resize(kPlaces, 0);
  }

  // Whether the draft was noted before; notes it.
  bool Note(const Draft& draft) {
    const uint64_t hash = HashOf(draft);
    uint64_t& place = hashes_[hash % kPlaces];
    const bool was_seen = place == hash;
    place = hash;
    return was_seen;
  }

 private:
  static constexpr size_t kPlaces = 4096;

  static uint64_t HashOf(const Draft& draft) {
    uint64_t hash = draft.aways.size() + 1;
    const auto mix = [&hash](uint64_t high, uint64_t low) {
      hash = (hash ^ (high << 32) ^ low) * 0xbf58476d1ce4e5b9;
      hash ^= hash >> 29;
    };
    for (const Away& a : draft.aways) {
      mix(a.offset, a.bytes);
      mix(a.use, a.release);
      mix(a.reserve, a.ready);
      mix(a.order, static_cast<uint32_t>(a.issue));
      mix(a.fetch, a.fetch_order);
      mix(a.copies_late ? 1 : 0, a.copies_again ? 1 : 0);
    }
    return hash;
  }

  Array<uint64_t> hashes_;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_SEEN_DRAFTS_H_
