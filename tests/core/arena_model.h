// An arena beside a naive model of it, driven by numbers: one step is an allocation, a free, a
// fence that passes, chunks given back, or a call of the owner's side that will fail. The model
// keeps every live range, and every freed range with the fence that was given for it; it knows
// nothing of slabs, caches or holes. The first broken claim is kept as a sentence.
//
// Used by the random tests, the fault tests and the fuzz target. Threads: one.

#ifndef TIDEMARK_TESTS_CORE_ARENA_MODEL_H_
#define TIDEMARK_TESTS_CORE_ARENA_MODEL_H_

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/core/counting_backend.h"

namespace tidemark::core {

class ArenaModel {
 public:
  // `host`: chunks of host memory for an owner that evicts; 0: one that does not.
  ArenaModel(ChunkIndex slots, ChunkIndex capacity, ChunkIndex host = 0,
             const ArenaOptions& options = {})
      : backend_(capacity), slots_(slots) {
    backend_.on_unmap = [this](ChunkIndex first, ChunkIndex count) { NoteUnmap(first, count); };
    backend_.on_alias = [this](ChunkIndex from, ChunkIndex to, ChunkIndex count) {
      NoteAlias(from, to, count);
    };
    const ArenaSeam seam = host == 0 ? backend_.Seam() : backend_.FullSeam(&arena_, host);
    Claim(arena_.Init(slots, seam, options), "an arena of this size fits in memory");
  }

  // `what` chooses, `argument` says how much, which one, where.
  void Step(uint8_t what, uint32_t argument) {
    switch (what % 16) {
      default:
        return (void)Allocate(SizeOf(argument), (what / 16) % 4);
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
      case 12:
        return Free(argument);
      case 13:
        return Pass(argument);
      case 14:
        if (argument % 4 != 0) return (void)arena_.Release(argument / 4 % 8);
        return (void)arena_.Decay();
      case 15:
        if (argument % 2 == 0) return Pin(argument / 2);
        if (faults) backend_.FailCall(backend_.calls() + argument / 2 % 4);
    }
  }

  // A training step of 40 layers: weights gathered ahead and let go, activations kept for the way
  // back, temporaries; then as many `states` as asked for are made anew, each before the old one is
  // freed, and nothing else is left. Sizes depend on `seed` alone, so that the same seed recurs
  // exactly. Request number `odd` differs, if there is one. With a `disturbance`, fences pass late
  // and other things happen in between.
  void Period(uint32_t seed, uint32_t odd) {
    std::mt19937 random(seed);
    request_ = 0;
    odd_ = odd;
    std::vector<Bytes> kept, gathered(2, kNone);
    for (int step = 0; step < 80; ++step) {
      const bool forward = step < 40;
      Pass(disturbance == 0 ? ~uint32_t{0} : static_cast<uint32_t>(disturb_()));
      End(gathered[step % 2]);
      gathered[step % 2] = Request((8 + random() % 24) * kMiB, 1);
      for (int i = 0; i < 3; ++i) {
        const Bytes small = random() % 6 == 0 ? random() % (256 * kKiB) : 0;
        const Bytes temporary = Request(kMiB + random() % (12 * kMiB) / kKiB * kKiB, 0);
        if (forward) kept.push_back(Request(small + random() % 16 * kMiB / 2, 0));
        End(temporary);
        if (forward) continue;
        End(kept.back());
        kept.pop_back();
      }
    }
    for (const Bytes offset : gathered) End(offset);
    states_.resize(std::max<size_t>(states_.size(), states), kNone);
    for (uint32_t i = 0; i < states; ++i) {
      const Bytes made = Request((1 + random() % 3) * 4 * kMiB + (seed % 2 * 100 * kKiB), 0);
      End(states_[i]);
      states_[i] = made;
    }
  }

  // The walk: slow, so not after every step.
  void Walk() {
    Claim(arena_.Validate(), "the arena's own walk passes");
    Claim(!backend_.misused(), "nothing is mapped twice or unmapped when it is not mapped");
    ChunkIndex mapped = 0;
    for (ChunkIndex i = 0; i < slots_; ++i) {
      const bool is = arena_.table().state(i) != ChunkState::kUnmapped;
      Claim(is == backend_.IsMapped(i), "table and owner agree on what is mapped");
      mapped += is ? 1 : 0;
    }
    Claim(mapped == backend_.mapped() + backend_.on_host(), "every mapped chunk is accounted for");
    Claim(arena_.table().host_chunks() == backend_.on_host(), "and so is every one on the host");
    Bytes requested = 0;
    for (const auto& [offset, live] : live_) requested += live.requested;
    Claim(requested == arena_.sums().requested(), "the sum of requests adds up");
    const AllocatorStats stats = arena_.Stats();
    Claim(stats.live_buffers == live_.size(), "every live buffer is counted");
    Claim(stats.allocated + stats.free_mapped == mapped * kChunkBytes, "what is mapped adds up");
    Claim(stats.largest_free_mapped <= stats.free_mapped && stats.waiting <= stats.free_mapped,
          "a part is no more than the whole");
  }

  // What the table says of each chunk, whether or not the arena has counted until now.
  void WalkChunks() {
    std::vector<uint32_t> touched(slots_);
    for (const auto& [offset, live] : live_) {
      const ChunkIndex last = LastChunkOf(offset, live.end - offset);
      for (ChunkIndex i = ChunkOf(offset); i <= last; ++i) ++touched[i];
    }
    // More is possible: what is cached counts as live.
    for (ChunkIndex i = 0; i < slots_; ++i) {
      Claim(arena_.table().live(i) >= touched[i], "a chunk counts the buffers that touch it");
    }
    Claim(arena_.Validate(), "the arena's own walk passes after counting");
  }

  // Frees everything, gives every chunk back: nothing may be left.
  void Finish() {
    backend_.FailCall(~uint64_t{0});
    while (!live_.empty()) Free(0);
    Pass(~uint32_t{0});
    arena_.Release(slots_);
    arena_.ReleaseHost();
    Walk();
    Claim(arena_.mapped() == 0, "an empty arena gives every chunk back");
    Claim(arena_.sums().Totals().allocated == 0, "nothing is counted when nothing lives");
    Claim(arena_.table().pinned_chunks() == 0, "pins end with their buffers");
  }

  // One buffer of all that is mapped, while nothing lives.
  void TakeAllMapped() {
    const Bytes taken = Allocate(Bytes{arena_.mapped()} * kChunkBytes, 0);
    Claim(taken != kNone, "a buffer gets all of the memory when nothing lives");
    End(taken);
  }

  // Small buffers of several chunks, which need slabs of their own.
  void TakeSlabs() {
    std::array<Bytes, 300> taken;
    for (Bytes& offset : taken) offset = Allocate(kSmallLimit, 0);
    for (const Bytes offset : taken) {
      Claim(offset != kNone, "a small buffer gets what is free");
      End(offset);
    }
  }

  ChunkIndex mapped() const { return arena_.mapped(); }
  const ArenaCounters& counters() const { return arena_.counters(); }
  const std::string& broken() const { return broken_; }
  uint64_t calls() const { return backend_.calls(); }
  void FailCall(uint64_t call) { backend_.FailCall(call); }
  // Requests that found the arena holding the bytes of its plan.
  uint64_t held() const { return held_; }
  // How often one of them was the first to find it so.
  uint64_t holds_begun() const { return holds_begun_; }
  bool faults = true;
  uint32_t states = 0;       // in each period from now on
  uint32_t disturbance = 0;  // before one request of a period in so many; 0: never

 private:
  struct Live {
    Block* block;
    Bytes end;
    Bytes requested;
    StreamId stream;
  };
  struct Freed {
    Bytes begin;
    Bytes end;
    FenceId fence;
    StreamId stream;  // needs no wait
  };

  Bytes Request(Bytes bytes, StreamId stream) {
    if (disturbance != 0 && disturb_() % disturbance == 0) Disturb();
    const bool holds = arena_.holds_plan();
    if (holds) ++held_;
    if (holds && !held_last_) ++holds_begun_;
    held_last_ = holds;
    return Allocate(bytes + (request_++ == odd_ ? kMiB : 0), stream);
  }
  void End(Bytes offset) {
    if (offset == kNone) return;
    if (disturbance != 0 && disturb_() % (2 * disturbance) == 0) {
      others_.push_back(offset);  // it ends later than usual
    } else {
      FreeAt(live_.find(offset), static_cast<uint32_t>(offset >> 20));
    }
  }

  // What others may do at any time while a period goes on.
  void Disturb() {
    const auto argument = static_cast<uint32_t>(disturb_());
    switch (argument / 64 % 11) {
      case 0:
        return Walk();
      case 7:
        return WalkChunks();
      case 1:
        return (void)arena_.Release(argument % 8);
      case 2:
        return (void)arena_.Decay();
      case 3:
        return (void)arena_.Missing(argument % (4 * kMiB));
      case 4:
        return (void)arena_.allocator().first();
      case 5:
        return Pin(argument / 64 * 64);
      case 6:
        return Step(15, argument | 1);
      default:  // a buffer that is no part of the period
        if (argument % 8 < 4 || others_.empty()) {
          const Bytes bytes =
              argument % 3 == 0 ? argument % (8 * kMiB) : argument % kSmallLimit + 1;
          const Bytes other = Allocate(bytes, argument % 2);
          if (other != kNone) others_.push_back(other);
        } else {
          const Bytes other = others_.back();
          others_.pop_back();
          End(other);
        }
    }
  }

  static constexpr Bytes kNone = ~Bytes{0};

  void Claim(bool holds, const char* what) {
    if (!holds && broken_.empty()) broken_ = std::string("it does not hold that ") + what;
  }

  // Few distinct sizes, as in training, and some of any size; now and then more than there is.
  static Bytes SizeOf(uint32_t argument) {
    const Bytes any = argument / 8;
    switch (argument % 8) {
      case 0:
        return any % kSmallLimit + 1;
      case 1:
        return (any % 16 + 1) * kBlockBytes;
      case 2:
        return Bytes{64} << any % 15;
      case 3:
        return (any % 4 + 1) * kChunkBytes;
      case 4:
        return 12 * kMiB + any % (40 * kMiB);
      case 5:
        return (any % 8 + 1) * kMiB;
      default:
        return kSmallLimit + any % (6 * kMiB);
    }
  }

  // The offset of the buffer, or kNone.
  Bytes Allocate(Bytes bytes, StreamId stream) {
    const Bytes before = arena_.sums().requested();
    const FenceId passed = std::max(passed_, arena_.passed());
    Block* block = arena_.Allocate(bytes, stream);
    passed_ = std::max(passed, arena_.passed());
    if (block == nullptr) {
      Claim(arena_.sums().requested() == before, "a refused request leaves no trace");
      return kNone;
    }
    const Bytes begin = block->offset;
    Claim(block->size >= bytes && block->requested == bytes, "a buffer holds what was asked for");
    const auto above = live_.lower_bound(begin);
    Claim(above == live_.end() || above->first >= block->end(), "no byte is handed out twice");
    Claim(above == live_.begin() || std::prev(above)->second.end <= begin,
          "no byte is handed out twice (below)");
    for (ChunkIndex i = ChunkOf(begin); i <= LastChunkOf(begin, block->size); ++i) {
      Claim(backend_.IsMapped(i), "buffers lie in mapped chunks");
    }
    CheckFences(begin, block->end(), stream);
    live_[begin] = {block, block->end(), bytes, stream};
    Claim(arena_.Find(block->end() - 1) == block, "a buffer is found by its last byte");
    Claim(arena_.Find(begin) == block, "and by its first");
    return begin;
  }

  // Whatever other streams may still do to these bytes, the new owner was ordered after; from then
  // on it needs no wait for it.
  void CheckFences(Bytes begin, Bytes end, StreamId stream) {
    std::vector<Freed> kept;
    for (const Freed& freed : freed_) {
      if (freed.fence <= passed_) continue;
      const Bytes from = std::max(begin, freed.begin), to = std::min(end, freed.end);
      const bool waits = from < to && (stream == kAnyStream || freed.stream != stream);
      if (!waits) {
        kept.push_back(freed);
        continue;
      }
      Claim(backend_.ordered_stream() == stream && backend_.ordered_fence() >= freed.fence,
            "work waits for the fence of the bytes it gets");
      if (freed.begin < from) kept.push_back({freed.begin, from, freed.fence, freed.stream});
      kept.push_back({from, to, freed.fence, stream});
      if (to < freed.end) kept.push_back({to, freed.end, freed.fence, freed.stream});
    }
    freed_ = std::move(kept);
  }

  void Free(uint32_t argument) {
    if (live_.empty()) return;
    auto at = live_.lower_bound(Bytes{argument / 8} * kBlockBytes % (slots_ * kChunkBytes));
    if (at == live_.end()) at = live_.begin();
    FreeAt(at, argument);
  }

  void FreeAt(std::map<Bytes, Live>::iterator at, uint32_t argument) {
    const Live live = at->second;
    Claim(arena_.Find(at->first + live.requested / 2) == live.block, "a live buffer is found");
    const StreamId stream = argument % 8 == 7 ? kAnyStream : live.stream;
    const FenceId fence = argument % 4 == 0 ? 0 : argument % 4 == 1 ? newest_ : ++newest_;
    const Bytes at_first = at->first;
    if (fence > passed_) freed_.push_back({at->first, live.end, fence, stream});
    live_.erase(at);
    arena_.Free(live.block, stream, fence);
    Claim(arena_.Find(at_first) == nullptr, "what is free is nobody's");
  }

  void Pass(uint32_t argument) {
    if (newest_ > passed_) passed_ += 1 + argument % (newest_ - passed_);
    if (argument == ~uint32_t{0}) passed_ = newest_;
    arena_.Passed(passed_);
  }

  void Pin(uint32_t argument) {
    if (!live_.empty() && argument % 64 == 0) {
      arena_.Pin(live_.begin()->second.block, static_cast<PinReason>(argument / 64 % kPinReasons));
    }
  }

  void ClaimNotLive(Bytes begin, Bytes end) {
    const auto above = live_.lower_bound(begin);
    Claim(above == live_.end() || above->first >= end, "no live byte loses its chunk");
    Claim(above == live_.begin() || std::prev(above)->second.end <= begin,
          "no live byte loses its chunk (below)");
  }

  // Work in flight stays where it was; whoever gets the bytes at their new address waits for it,
  // whatever his stream.
  void NoteAlias(ChunkIndex from, ChunkIndex to, ChunkIndex count) {
    const Bytes begin = Bytes{from} * kChunkBytes;
    const Bytes end = begin + Bytes{count} * kChunkBytes;
    ClaimNotLive(begin, end);
    std::vector<Freed> moved;
    for (const Freed& freed : freed_) {
      if (freed.fence <= passed_ || freed.end <= begin || freed.begin >= end) continue;
      const Bytes at = Bytes{to} * kChunkBytes - begin;
      moved.push_back({std::max(begin, freed.begin) + at, std::min(end, freed.end) + at,
                       freed.fence, kAnyStream});
    }
    freed_.insert(freed_.end(), moved.begin(), moved.end());
  }

  void NoteUnmap(ChunkIndex first, ChunkIndex count) {
    const Bytes begin = Bytes{first} * kChunkBytes;
    const Bytes end = begin + Bytes{count} * kChunkBytes;
    ClaimNotLive(begin, end);
    for (const Freed& freed : freed_) {
      if (freed.end <= begin || freed.begin >= end) continue;
      Claim(freed.fence <= std::max(passed_, backend_.settled()),
            "a chunk moves only when all work on it has passed");
    }
  }

  CountingBackend backend_;
  Arena arena_;
  ChunkIndex slots_;
  std::map<Bytes, Live> live_;
  std::vector<Freed> freed_;
  uint32_t request_ = 0;  // of the period in hand
  std::vector<Bytes> states_;
  uint32_t odd_ = 0;
  FenceId newest_ = 0;
  FenceId passed_ = 0;
  std::mt19937 disturb_{7};
  std::vector<Bytes> others_;
  uint64_t held_ = 0;
  uint64_t holds_begun_ = 0;
  bool held_last_ = false;
  std::string broken_;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_ARENA_MODEL_H_
