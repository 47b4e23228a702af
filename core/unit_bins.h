// Free runs inside slabs by length: a list for each number of 512 B units up to one chunk, and a
// bit for each list that is not empty. The shortest run that fits is found in a few instructions,
// so a long run is never spent on a request that a shorter one can serve.
//
// Threads: none of its own.

#ifndef TIDEMARK_CORE_UNIT_BINS_H_
#define TIDEMARK_CORE_UNIT_BINS_H_

#include <bit>
#include <cstdint>

#include "core/block.h"

namespace tidemark::core {

class UnitBins {
 public:
  static constexpr uint32_t kUnits = static_cast<uint32_t>(kChunkBytes / kBlockBytes);
  static constexpr uint32_t kNone = ~uint32_t{0};

  void Add(Block* block) {
    const uint32_t units = UnitsOf(block);
    bins_[units].Append(block);
    words_[units / 64] |= uint64_t{1} << units % 64;
    summary_[units / 64 / 64] |= uint64_t{1} << units / 64 % 64;
  }
  void Remove(Block* block) {
    const uint32_t units = UnitsOf(block);
    bins_[units].Remove(block);
    if (bins_[units].head != nullptr) return;
    words_[units / 64] &= ~(uint64_t{1} << units % 64);
    if (words_[units / 64] == 0) summary_[units / 64 / 64] &= ~(uint64_t{1} << units / 64 % 64);
  }
  // The fewest units, at least `units`, that a run here has; kNone when all are shorter.
  uint32_t AtLeast(uint32_t units) const {
    if (units > kUnits) return kNone;
    uint32_t word = units / 64;
    uint64_t bits = words_[word] & (~uint64_t{0} << units % 64);
    if (bits == 0) {
      word = NextWord(word + 1);
      if (word == kNone) return kNone;
      bits = words_[word];
    }
    return word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
  }
  Block* first(uint32_t units) const { return bins_[units].head; }

  static uint32_t UnitsOf(const Block* block) {
    return static_cast<uint32_t>(block->size / kBlockBytes);
  }

 private:
  static constexpr uint32_t kWords = kUnits / 64 + 1;
  static constexpr uint32_t kSummaries = kWords / 64 + 1;

  uint32_t NextWord(uint32_t word) const {
    for (uint32_t i = word / 64; i < kSummaries; ++i) {
      uint64_t bits = summary_[i];
      if (i == word / 64) bits &= ~uint64_t{0} << word % 64;
      if (bits != 0) return i * 64 + static_cast<uint32_t>(std::countr_zero(bits));
    }
    return kNone;
  }

  uint64_t words_[kWords] = {};
  uint64_t summary_[kSummaries] = {};
  BlockList bins_[kUnits + 1];
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_UNIT_BINS_H_
