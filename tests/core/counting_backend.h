// The owner's side of core/arena.h without a device: counts chunks and calls, has a capacity, keeps
// which slots are mapped, and fails any one call on demand. For tests and for replaying recorded
// allocation sequences:
//
//   CountingBackend backend(capacity_in_chunks);
//   Arena arena;
//   arena.Init(slots, backend.Seam());          // slots: addresses, several times the capacity
//   Block* block = arena.Allocate(bytes);       // null: out of memory at this capacity
//   arena.Free(block);
//   backend.peak_held();                        // physical chunks; arena.counters().stitched:
//   remaps
//
// Threads: one.

#ifndef TIDEMARK_TESTS_CORE_COUNTING_BACKEND_H_
#define TIDEMARK_TESTS_CORE_COUNTING_BACKEND_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "core/arena.h"
#include "tests/core/late_fences.h"

namespace tidemark::core {

class CountingBackend {
 public:
  explicit CountingBackend(ChunkIndex capacity) : capacity_(capacity) {}
  CountingBackend(const CountingBackend&) = delete;
  CountingBackend& operator=(const CountingBackend&) = delete;

  ArenaSeam Seam() {
    ArenaSeam seam;
    seam.owner = this;
    seam.map = [](void* owner, ChunkIndex first, ChunkIndex count) {
      return Self(owner)->Map(first, count);
    };
    seam.unmap = [](void* owner, ChunkIndex first, ChunkIndex count) {
      return Self(owner)->Unmap(first, count);
    };
    seam.available = [](void* owner) { return Self(owner)->capacity_ - Self(owner)->mapped_; };
    seam.order = [](void* owner, StreamId stream, FenceId fence) {
      return Self(owner)->Order(stream, fence);
    };
    seam.settle = [](void* owner, FenceId fence) { return Self(owner)->Settle(fence); };
    return seam;
  }

  // The same with the means that not every owner has: chunks are acquired before they are mapped,
  // live ones leave for `host` chunks of host memory, what is lacking lies there, and free ones
  // move while work in flight may use them.
  ArenaSeam FullSeam(Arena* arena, ChunkIndex host) {
    ArenaSeam seam = Seam();
    arena_ = arena;
    host_capacity_ = host;
    seam.available = [](void* owner) { return Self(owner)->reserve_; };
    seam.acquire = [](void* owner, ChunkIndex count) { Self(owner)->Acquire(count); };
    seam.evict = [](void* owner, ChunkIndex count) { return Self(owner)->Evict(count); };
    seam.map_host = [](void* owner, ChunkIndex first, ChunkIndex count) {
      return Self(owner)->MapHost(first, count);
    };
    seam.alias = [](void* owner, ChunkIndex from, ChunkIndex to, ChunkIndex count) {
      return Self(owner)->Alias(from, to, count);
    };
    seam.leave = [](void* owner, ChunkIndex first, ChunkIndex count) {
      return Self(owner)->Leave(first, count);
    };
    return seam;
  }

  // Chunks mapped or kept for the next map: what the device has given away.
  ChunkIndex held() const { return mapped_ + reserve_; }
  ChunkIndex peak_held() const { return peak_held_; }
  ChunkIndex mapped() const { return mapped_; }
  ChunkIndex on_host() const { return on_host_; }
  // Not where a chunk was before it was aliased.
  bool IsMapped(ChunkIndex chunk) const {
    return chunk < slots_.size() && slots_[chunk] != kNothing && slots_[chunk] != kLeaving;
  }
  void LetReserveGo() { reserve_ = 0; }
  // Calls so far that may fail: map, unmap, order, settle, acquire, evict, map_host, alias, leave.
  uint64_t calls() const { return calls_; }
  // Call number `call`, counted from 0, fails.
  void FailCall(uint64_t call) { fail_at_ = call; }
  // A call that the seam forbids was made: mapping what is mapped, unmapping what is not.
  bool misused() const { return misused_; }
  // The largest fence that was waited for.
  FenceId settled() const { return settled_; }
  // Of the last successful `order`.
  StreamId ordered_stream() const { return ordered_stream_; }
  FenceId ordered_fence() const { return ordered_fence_; }
  // Where frees are in flight: `order` and `settle` are told to it.
  LateFences* late = nullptr;
  // Runs once, in the next `acquire`: others may call the arena there.
  std::function<void()> during_acquire;
  // Is told of every range before it is unmapped, or left after it was aliased.
  std::function<void(ChunkIndex first, ChunkIndex count)> on_unmap;
  // Is told of every range whose chunks are aliased.
  std::function<void(ChunkIndex from, ChunkIndex to, ChunkIndex count)> on_alias;

 private:
  static CountingBackend* Self(void* owner) { return static_cast<CountingBackend*>(owner); }
  bool Fails() { return calls_++ == fail_at_; }

  enum : uint8_t { kNothing, kDevice, kHost, kLeaving };

  void Place(ChunkIndex first, ChunkIndex count, uint8_t what) {
    if (slots_.size() < first + count) {
      slots_.resize(first + count);
      chunks_.resize(first + count);
    }
    for (ChunkIndex i = first; i < first + count; ++i) {
      if (slots_[i] != kNothing) misused_ = true;
      slots_[i] = what;
      chunks_[i] = ++newest_chunk_;
    }
    (what == kHost ? on_host_ : mapped_) += count;
  }
  bool Map(ChunkIndex first, ChunkIndex count) {
    if (Fails() || count > capacity_ - mapped_) return false;
    Place(first, count, kDevice);
    reserve_ -= reserve_ < count ? reserve_ : count;
    if (held() > peak_held_) peak_held_ = held();
    return true;
  }
  bool MapHost(ChunkIndex first, ChunkIndex count) {
    if (Fails() || count > host_capacity_ - on_host_) return false;
    Place(first, count, kHost);
    return true;
  }
  bool Unmap(ChunkIndex first, ChunkIndex count) {
    if (Fails()) return false;
    if (on_unmap) on_unmap(first, count);
    const bool host = IsMapped(first) && slots_[first] == kHost;
    for (ChunkIndex i = first; i < first + count; ++i) {
      if (!IsMapped(i) || (slots_[i] == kHost) != host) {
        misused_ = true;
        return false;
      }
      if (IsLeaving(i)) misused_ = true;
      slots_[i] = kNothing;
    }
    if (host) {
      on_host_ -= count;
    } else {
      mapped_ -= count;
      reserve_ += count;
    }
    return true;
  }
  bool Alias(ChunkIndex from, ChunkIndex to, ChunkIndex count) {
    if (Fails()) return false;
    if (on_alias) on_alias(from, to, count);
    for (ChunkIndex i = 0; i < count; ++i) {
      if (!IsMapped(from + i) || slots_[from + i] != kDevice) misused_ = true;
      slots_[from + i] = kLeaving;
    }
    mapped_ -= count;
    Place(to, count, kDevice);
    for (ChunkIndex i = 0; i < count; ++i) chunks_[to + i] = chunks_[from + i];
    leaving_ += count;
    return true;
  }
  bool Leave(ChunkIndex first, ChunkIndex count) {
    if (Fails()) {
      leave_failed_ = true;
      return false;
    }
    if (on_unmap) on_unmap(first, count);
    for (ChunkIndex i = first; i < first + count; ++i) {
      if (slots_[i] != kLeaving) misused_ = true;
      slots_[i] = kNothing;
    }
    leaving_ -= count;
    return true;
  }
  // What the owner gives to others must lie nowhere any more.
  bool IsLeaving(ChunkIndex slot) const {
    if (leaving_ == 0 || leave_failed_) return false;
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] == kLeaving && chunks_[i] == chunks_[slot]) return true;
    }
    return false;
  }
  void Acquire(ChunkIndex count) {
    if (during_acquire) std::exchange(during_acquire, nullptr)();
    if (Fails()) return;
    if (count > reserve_) reserve_ = count < capacity_ - mapped_ ? count : capacity_ - mapped_;
    if (held() > peak_held_) peak_held_ = held();
  }
  // The lowest ones that are live and not pinned.
  ChunkIndex Evict(ChunkIndex count) {
    if (Fails() || count > host_capacity_ - on_host_) return 0;
    ChunkTable& table = arena_->table();
    ChunkIndex moved = 0;
    for (ChunkIndex i = 0; i < table.high_water() && moved < count; ++i) {
      if (table.state(i) != ChunkState::kDevice || table.live(i) == 0 || table.pinned(i)) continue;
      table.SetState(i, ChunkState::kHost);
      slots_[i] = kHost;
      ++moved;
    }
    mapped_ -= moved;
    reserve_ += moved;
    on_host_ += moved;
    return moved;
  }
  bool Order(StreamId stream, FenceId fence) {
    if (Fails()) return false;
    if (late != nullptr) late->Order(fence);
    ordered_stream_ = stream;
    ordered_fence_ = fence;
    return true;
  }
  FenceId Settle(FenceId fence) {
    if (!Fails()) settled_ = late != nullptr ? late->Settle() : fence;
    return settled_;
  }

  ChunkIndex capacity_;
  ChunkIndex mapped_ = 0;
  ChunkIndex reserve_ = 0;
  Arena* arena_ = nullptr;
  ChunkIndex host_capacity_ = 0;
  ChunkIndex on_host_ = 0;
  ChunkIndex peak_held_ = 0;
  uint64_t calls_ = 0;
  uint64_t fail_at_ = ~uint64_t{0};
  FenceId settled_ = 0;
  StreamId ordered_stream_ = kAnyStream;
  FenceId ordered_fence_ = 0;
  bool misused_ = false;
  std::vector<uint8_t> slots_;
  std::vector<uint64_t> chunks_;  // which one lies, or lay, in the slot
  uint64_t newest_chunk_ = 0;
  ChunkIndex leaving_ = 0;
  bool leave_failed_ = false;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_COUNTING_BACKEND_H_
