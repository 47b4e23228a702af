// Tells requests that will last, such as optimizer state, from all others before one of them has
// ended: in a row of requests without a free, and of a size of which several were made and none was
// ever freed. The first that come so are not told, and what no longer holds is forgotten for good:
// one free of a size is enough, and after a few sizes that did not last, as where each iteration
// brings new ones, all are taken for what will be gone. All of it is forgotten where a job ends and
// another one begins in the same process.
//
// Why: what lasts and lies in a hole between buffers that end soon is left alone in the chunks in
// which it begins and ends, with nothing but addresses that are too few for a large buffer beside
// it. A training whose optimizer keeps a byte for each parameter lost 3 % of its memory to some
// tens of such chunks.
//
// Not here: where they go instead (arena_lasting.cc). Threads: none of its own.

#ifndef TIDEMARK_CORE_LASTING_H_
#define TIDEMARK_CORE_LASTING_H_

#include <cstdint>

#include "core/units.h"

namespace tidemark::core {

class Lasting {
 public:
  Lasting() = default;
  // A request for `size`, rounded to blocks, is about to be placed.
  bool Lasts(Bytes size) const {
    if (in_row_ < kInRow || size <= kSmallLimit || mistakes_ >= kMostMistakes) return false;
    const uint8_t made = made_[IndexOf(size)];
    return made == kMade || made == kTaken;
  }
  // One that lasts was placed as such.
  void Taken(Bytes size) { made_[IndexOf(size)] = kTaken; }
  // The same, or it is one of those that a job begins with, such as weights: nothing large was ever
  // freed.
  bool MayLast(Bytes size) const { return in_row_ >= kInRow && (!freed_large_ || Lasts(size)); }
  void Made(Bytes size) {
    if (in_row_++ == 0 && ends_) *this = Lasting(1);
    if (size <= kSmallLimit) return;
    uint8_t& made = made_[IndexOf(size)];
    if (made < kMade) ++made;
  }
  // Little of what was made is left: the next one to be made is the first of another job.
  void End() { ends_ = true; }
  void Freed(Bytes size) {
    in_row_ = 0;
    if (size <= kSmallLimit) return;
    uint8_t& made = made_[IndexOf(size)];
    if (made == kTaken) ++mistakes_;
    made = kFreed;
    freed_large_ = freed_large_ || size >= kChunkBytes;
  }

 private:
  explicit Lasting(uint32_t in_row) : in_row_(in_row) {}
  static constexpr uint32_t kInRow = 4;
  static constexpr uint8_t kMade = 8;
  static constexpr uint8_t kTaken = kMade + 1;
  static constexpr uint8_t kFreed = kMade + 2;
  static constexpr uint32_t kMostMistakes =
      12;  // sizes; trainings made 2 to 10 by their first step
  static constexpr int kIndexBits = 12;
  // Sizes that share an entry count as one.
  static uint32_t IndexOf(Bytes size) {
    return static_cast<uint32_t>((size / kBlockBytes * UINT64_C(0x9e3779b97f4a7c15)) >>
                                 (64 - kIndexBits));
  }

  uint8_t made_[1 << kIndexBits] = {};
  uint32_t in_row_ = 0;
  uint32_t mistakes_ = 0;
  bool freed_large_ = false;
  bool ends_ = false;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_LASTING_H_
