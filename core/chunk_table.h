// What lies under each chunk-sized slot of one arena: nothing, device memory or host memory; how
// many live buffers touch it, when it was last used, and what forbids to move it. The sums add up:
// every counter is the sum over the slots, and Validate() says whether it is.
//
// Not here: handles and mappings (the owner of core/arena.h), buffers (arena_allocator.h). Threads:
// none of its own; the owner serialises, except that state() may be read while other slots change.

#ifndef TIDEMARK_CORE_CHUNK_TABLE_H_
#define TIDEMARK_CORE_CHUNK_TABLE_H_

#include <memory>

#include "core/units.h"

namespace tidemark::core {

enum class ChunkState : uint8_t { kUnmapped, kDevice, kHost };

// Why a chunk may not move. The values index counters.
enum class PinReason : uint8_t { kIpc, kPeer, kGraph, kRegistered };
inline constexpr int kPinReasons = 4;

class ChunkTable {
 public:
  // Room for `chunks` slots, all unmapped. False: out of memory; the table is unusable.
  bool Init(ChunkIndex chunks);

  ChunkIndex size() const { return size_; }
  ChunkState state(ChunkIndex chunk) const { return slots_[chunk].state; }
  void SetState(ChunkIndex chunk, ChunkState state);

  // Buffers that touch the chunk.
  uint32_t live(ChunkIndex chunk) const {
    if (count_rest_ != nullptr) count_rest_(counter_);
    return counted(chunk);
  }
  // For an owner who spares himself the counting until somebody asks: from now on live() calls
  // `count_rest` first, which adds what was left out and calls this again with null.
  void CountLater(void (*count_rest)(void* counter), void* counter) {
    count_rest_ = count_rest;
    counter_ = counter;
  }
  // As live(), without what is left out at present.
  uint32_t counted(ChunkIndex chunk) const {
    return live_[chunk] + static_cast<uint32_t>(inside_[chunk / 64] >> chunk % 64 & 1);
  }
  void AddLive(ChunkIndex chunk) { ++live_[chunk]; }
  // False when there was none: the counter does not underflow.
  bool DropLive(ChunkIndex chunk);
  // One buffer that touches [first, last], and has those between them to itself.
  void AddLive(ChunkIndex first, ChunkIndex last) {
    const ChunkIndex more = first != last ? 1 : 0;
    ++live_[first];
    live_[last] = static_cast<uint16_t>(live_[last] + more);
    const Inside inside = InsideOf(first, last - first - more);
    if (inside.many) return SetInside(first + 1, last, ~uint64_t{0});
    inside_[inside.word] |= inside.low;
    inside_[inside.word + 1] |= inside.high;
  }
  // The pins of chunks that lose their last buffer are dropped.
  void DropLive(ChunkIndex first, ChunkIndex last) {
    const ChunkIndex more = first != last ? 1 : 0;
    --live_[first];
    live_[last] = static_cast<uint16_t>(live_[last] - more);
    const Inside inside = InsideOf(first, last - first - more);
    if (inside.many) {
      SetInside(first + 1, last, 0);
    } else {
      inside_[inside.word] &= ~inside.low;
      inside_[inside.word + 1] &= ~inside.high;
    }
    if (pinned_ != 0) UnpinIdle(first, last);
  }

  LaunchNumber last_use(ChunkIndex chunk) const { return slots_[chunk].last_use; }
  void NoteUse(ChunkIndex chunk, LaunchNumber launch) {
    if (slots_[chunk].last_use < launch) slots_[chunk].last_use = launch;
  }

  // A chunk that policy wants on the device: a victim only where nothing else is one.
  void HoldBack(ChunkIndex chunk, bool held) { slots_[chunk].held_back = held; }
  // Makes it the first to go, until it is used again.
  void ForgetUse(ChunkIndex chunk) { slots_[chunk].last_use = 0; }

  void Pin(ChunkIndex chunk, PinReason reason);
  bool Unpin(ChunkIndex chunk, PinReason reason);
  void UnpinAll(ChunkIndex chunk);  // its last buffer is gone
  bool pinned(ChunkIndex chunk) const { return slots_[chunk].pins_total != 0; }
  uint32_t pins(ChunkIndex chunk, PinReason reason) const {
    return slots_[chunk].pins[static_cast<int>(reason)];
  }

  ChunkIndex device_chunks() const { return count_[1]; }
  ChunkIndex host_chunks() const { return count_[2]; }
  ChunkIndex pinned_chunks() const { return pinned_; }
  // One past the highest slot that was ever mapped: no scan needs to go beyond.
  ChunkIndex high_water() const { return high_water_; }

  // When a chunk is expected to be used next, in launches from now; kNotForeseen: no expectation,
  // so that order is by last use. Forgotten by ForgetNextUses.
  static constexpr LaunchNumber kNotForeseen = 0;
  void ForgetNextUses();
  void ForeseeUse(ChunkIndex chunk, LaunchNumber in) {
    LaunchNumber& next = slots_[chunk].next_use;
    if (next == kNotForeseen || in < next) next = in;
  }
  LaunchNumber next_use(ChunkIndex chunk) const { return slots_[chunk].next_use; }

  // Device chunks to evict, best first: live, not pinned, last used before `before`; those held
  // back come last, then the one used next last of all, then the one used longest ago, then the
  // lowest index. Writes at most `most` to `list`; returns how many.
  uint32_t Victims(LaunchNumber before, ChunkIndex* list, uint32_t most) const;
  // The first of them; `size()` when there is none.
  ChunkIndex Victim(LaunchNumber before) const {
    ChunkIndex best = 0;
    return Victims(before, &best, 1) != 0 ? best : size_;
  }

  bool Validate() const;

 private:
  struct Slot {
    LaunchNumber last_use = 0;
    LaunchNumber next_use = 0;
    uint16_t pins[kPinReasons] = {};
    uint16_t pins_total = 0;
    bool held_back = false;
    ChunkState state = ChunkState::kUnmapped;
  };

  // The bits of the `count` chunks after `first`: without a branch on sizes, which no processor
  // foresees, as long as they lie in two words.
  struct Inside {
    size_t word = 0;
    uint64_t low = 0;   // of that word
    uint64_t high = 0;  // of the next one
    bool many = false;
  };
  static Inside InsideOf(ChunkIndex first, ChunkIndex count) {
    const uint64_t ones = (~uint64_t{0} >> 1) >> (63 - count % 64);
    const ChunkIndex shift = (first + 1) % 64;
    return {(first + 1) / 64, ones << shift, (ones >> 1) >> (63 - shift), count >= 64};
  }
  bool Better(ChunkIndex a, ChunkIndex b) const;
  // 64 chunks at a time: a buffer of a gigabyte costs hardly more than one of a megabyte.
  void SetInside(ChunkIndex from, ChunkIndex end, uint64_t bits) {
    while (from < end) {
      const ChunkIndex word = from / 64;
      uint64_t mask = ~uint64_t{0} << from % 64;
      if (end - word * 64 < 64) mask &= (uint64_t{1} << end % 64) - 1;
      inside_[word] = (inside_[word] & ~mask) | (bits & mask);
      from = (word + 1) * 64;
    }
  }
  void UnpinIdle(ChunkIndex first, ChunkIndex last);

  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<uint16_t[]> live_;    // that begin or end there: one for each 512 B at most
  std::unique_ptr<uint64_t[]> inside_;  // bits: the chunk lies inside one buffer
  void (*count_rest_)(void* counter) = nullptr;
  void* counter_ = nullptr;
  ChunkIndex size_ = 0;
  ChunkIndex count_[3] = {};
  ChunkIndex pinned_ = 0;
  ChunkIndex high_water_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_CHUNK_TABLE_H_
