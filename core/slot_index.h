// The lowest slot whose value is at least so much: an array of small numbers with the maxima of 32
// neighbours above it, level upon level. Finding and setting touch one line of 64 bytes per level,
// and only as many levels as the slots in use need: three for 64 GiB of chunks.
//
// Threads: none of its own.

#ifndef TIDEMARK_CORE_SLOT_INDEX_H_
#define TIDEMARK_CORE_SLOT_INDEX_H_

#include <cstdint>

#include "core/array.h"

namespace tidemark::core {

class SlotIndex {
 public:
  using Value = int16_t;
  static constexpr uint32_t kNone = ~uint32_t{0};

  // Room for `slots` values, all 0. False: out of memory.
  bool Init(uint32_t slots);

  Value value(uint32_t slot) const { return level_[0].values[slot]; }
  void Set(uint32_t slot, Value value);
  // Set twice, for less when the slots are near each other.
  void SetBoth(uint32_t slot, Value value, uint32_t other, Value other_value);

  // The lowest slot from `from` on with a value of at least `least` (above 0), or kNone.
  uint32_t Find(uint32_t from, Value least) const;

  // Every maximum is what it claims to be.
  bool Validate() const;

 private:
  static constexpr int kMostLevels = 7;
  static constexpr uint32_t kFan = 32;  // one line of a cache, one word of bits
  struct Level {
    Value* values = nullptr;
    uint32_t count = 0;  // a multiple of kFan
  };

  void Cover(uint32_t slot);
  void Propagate(int level, uint32_t slot, Value old, Value value);

  Array<Value> storage_;
  Level level_[kMostLevels];
  int levels_ = 0;
  int depth_ = 1;            // levels in use
  uint64_t covered_ = kFan;  // slots below the first group of the top one; no other was ever set
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_SLOT_INDEX_H_
