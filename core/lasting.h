// Tells requests that will last, such as optimizer state, from all others before one of them has
// ended: of medium size, in a row of requests without a free, and of a size of which several were
// made and none was ever freed. The first that come so are not told, and what no longer holds is
// forgotten for good: one free of a size is enough.
//
// Why: what lasts and lies in a narrow hole between buffers that end soon is left alone in its
// chunk, with nothing but addresses that are too few for a large buffer on either side. A training
// whose optimizer keeps a byte for each parameter lost 3 % of its memory to some tens of such
// chunks.
//
// Not here: where they go instead (arena_lasting.cc). Threads: none of its own.

#ifndef TIDEMARK_CORE_LASTING_H_
#define TIDEMARK_CORE_LASTING_H_

#include <cstdint>

#include "core/units.h"

namespace tidemark::core {

class Lasting {
 public:
  // A request for `size`, rounded to blocks, is about to be placed.
  bool Lasts(Bytes size) const {
    return in_row_ >= kInRow && IsMedium(size) && made_[IndexOf(size)] == kMade;
  }
  void Made(Bytes size) {
    ++in_row_;
    if (!IsMedium(size)) return;
    uint8_t& made = made_[IndexOf(size)];
    if (made < kMade) ++made;
  }
  void Freed(Bytes size) {
    in_row_ = 0;
    if (IsMedium(size)) made_[IndexOf(size)] = kFreed;
  }

 private:
  static constexpr uint32_t kInRow = 4;
  static constexpr uint8_t kMade = 8;
  static constexpr uint8_t kFreed = kMade + 1;
  static constexpr int kIndexBits = 12;
  // Smaller ones share slabs, and larger ones leave no such chunks.
  static bool IsMedium(Bytes size) { return size - kSmallLimit - 1 < kChunkBytes - kSmallLimit; }
  // Sizes that share an entry count as one.
  static uint32_t IndexOf(Bytes size) {
    return static_cast<uint32_t>((size / kBlockBytes * UINT64_C(0x9e3779b97f4a7c15)) >>
                                 (64 - kIndexBits));
  }

  uint8_t made_[1 << kIndexBits] = {};
  uint32_t in_row_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_LASTING_H_
