// The places of a plan (placement_plan.h) as the arena hands them out once it holds the plan's
// bytes: which of them are taken, who was the last to use the bytes of each, and until when work on
// them goes on. Handing out and taking back touch one place and its predecessors: nothing is
// searched, split or merged.
//
// Predecessors of a place are the requests of the period that had one of its bytes last before it.
// As long as every request comes in the order of the plan, a place is free when none of them is
// alive, and whoever gets it waits for what they waited for. Frees may come in any order.
//
// What it takes is built in portions, but for one sort; memory is 70 bytes for each request of a
// period.
// Not here: the blocks between (arena_held.cc). Threads: none of its own.

#ifndef TIDEMARK_CORE_HELD_PLACES_H_
#define TIDEMARK_CORE_HELD_PLACES_H_

#include <algorithm>
#include <bit>

#include "core/array.h"
#include "core/block.h"
#include "core/packing.h"
#include "core/units.h"

namespace tidemark::core {

class HeldPlaces {
 public:
  // For a plan of at most Packing::kMost requests, which stays as it is. Begins to build; what was
  // built before is gone. False: out of memory.
  bool Start(const Array<Recurring>* plan);
  void Stop() { stage_ = Stage::kNone; }
  bool started() const { return stage_ != Stage::kNone; }
  // Goes on for `requests` of the plan. False: out of memory.
  bool Work(uint32_t requests);
  bool ready() const { return stage_ == Stage::kReady; }

  // Whether no request of the plan ever gets one of the units [first, end) from the plan's base.
  bool Unused(uint64_t first, uint64_t end) const;
  // The next units [*first, *end) all of which some request gets, at or above the bound `*bound`,
  // which then is beyond them. False: there are none. Begin with 0.
  bool NextUsed(uint32_t* bound, uint64_t* first, uint64_t* end) const;

  // No place is taken, and nothing is waited for.
  void Clear();
  // Nobody gets a place before `fence`.
  void Await(FenceId fence) { fence_ = latest_ = fence; }
  bool Has(uint32_t request) const { return wanted_[request].place != Recurring::kNowhere; }
  Bytes OffsetOf(uint32_t request) const { return Bytes{wanted_[request].place} * kBlockBytes; }
  // Whether the place of `request` is free. Adds the fence of its bytes to `*fence` and `*stream`,
  // as far as it is greater than `passed`.
  bool Offer(uint32_t request, FenceId passed, FenceId* fence, StreamId* stream) const {
    if (IsTaken(request)) return false;
    if (latest_ > passed) JoinFences(request, passed, fence, stream);
    return true;
  }
  // Whether a request for `units` on `stream` is the one of this place, which is free and need not
  // wait for anything.
  bool Fits(uint32_t request, uint64_t units, StreamId stream, FenceId passed) const {
    const Wanted& wanted = wanted_[request];
    return wanted.units == units && wanted.stream == stream && !IsTaken(request) &&
           (latest_ <= passed || FenceOf(request) <= passed);
  }
  void Take(uint32_t request, Block* block) {
    Tenure& tenure = tenures_[request];
    tenure.block = block;
    taken_[request] = 1;
    block->slot = static_cast<uint16_t>(request + 1);
    live_[tenure.low / 64] |= uint64_t{1} << tenure.low % 64;
    at_[tenure.low] = static_cast<uint16_t>(request);
  }
  // The block at `offset` of the arena, if it is the one whose free is expected next: the one that
  // was freed after the last one in the period before.
  Block* Expected(Bytes offset) const {
    Block* block = tenures_[expected_].block;
    return block != nullptr && block->offset == offset ? block : nullptr;
  }
  // The block is gone; others may use its bytes after `fence`, those of `stream` at once.
  void Give(uint32_t slot, FenceId fence, StreamId stream) {
    const uint32_t request = slot - 1;
    Tenure& tenure = tenures_[request];
    tenures_[freed_].follower = static_cast<uint16_t>(request);
    freed_ = request;
    expected_ = tenure.follower;
    tenure.block = nullptr;
    taken_[request] = 0;
    live_[tenure.low / 64] &= ~(uint64_t{1} << tenure.low % 64);
    if (fence > latest_) latest_ = fence;
    if (latest_ != 0) fences_[request] = fence, tenure.stream = stream;
    FetchExpected();
  }
  // Bytes of free places whose fences have not passed, those of several places several times.
  Bytes Waiting(FenceId passed) const;
  // The block that holds the byte `offset` from the base, or null.
  Block* Find(Bytes offset) const;
  // The block with the lowest address at or above that of `*bound`, which then is beyond it; null:
  // there is none. Begin with 0.
  Block* Next(uint32_t* bound) const;

 private:
  enum class Stage : uint8_t { kNone, kBounds, kFirstRound, kSecondRound, kReady };
  static constexpr uint16_t kNobody = UINT16_MAX;
  // Predecessors come in so many, filled up with one that is never taken: most requests have no
  // more, and a loop that ends at another count each time is one that no processor foresees.
  static constexpr uint32_t kTogether = 4;
  // What the request of each phase asks for, read one after the other.
  struct Wanted {
    uint32_t units = 0;  // 0: it has no place here
    StreamId stream = kAnyStream;
    uint32_t place = Recurring::kNowhere;
    uint32_t first = 0;  // its predecessors in before_ end where those of the next one begin
  };
  // Who has the place of a request, read in the order of frees.
  struct Tenure {
    Block* block = nullptr;        // while it is taken
    StreamId stream = kAnyStream;  // of its fence
    uint16_t low = 0;              // its place in bounds_
    uint16_t follower = 0;         // the request whose block was freed next
  };

  // Looks at a few bytes for each predecessor, and not at what is known of it beyond that.
  bool IsTaken(uint32_t request) const {
    const uint16_t* before = &before_[wanted_[request].first];
    const uint16_t* end = &before_[wanted_[request + 1].first];
    uint32_t taken = 0;
    for (; before != end; before += kTogether) {
      for (uint32_t j = 0; j < kTogether; ++j) taken |= taken_[before[j]];
    }
    return taken != 0;
  }
  FenceId FenceOf(uint32_t request) const;
  // Its free comes after that of the last one, and that of its follower after it.
  void FetchExpected() const {
    const Tenure& expected = tenures_[expected_];
    __builtin_prefetch(expected.block);
    __builtin_prefetch(&tenures_[expected.follower]);
  }
  void JoinFences(uint32_t request, FenceId passed, FenceId* fence, StreamId* stream) const;
  static void Join(FenceId more, StreamId by, FenceId* fence, StreamId* stream) {
    *stream = *fence == 0 || *stream == by ? by : kAnyStream;
    if (more > *fence) *fence = more;
  }
  // The others take turns, are in a berth, or have no place in the plan.
  bool IsPacked(const Recurring& request) const { return request.IsFixed(plan_->size()); }
  bool SortBounds();
  bool MakeCoarse();
  // The last bound at or below `unit`, which is not below the first.
  uint32_t BoundAt(uint64_t unit) const;
  bool Settle(uint32_t request, bool note);
  bool FillUp();
  bool Note(uint16_t tenant, bool note) {
    return !note || tenant == kNobody || before_.Append(tenant);
  }
  static uint32_t LastSet(const Array<uint64_t>& bits, uint32_t bound);
  static uint32_t NextSet(const Array<uint64_t>& bits, uint32_t bound, uint32_t end);

  static constexpr uint32_t kFinest = 12;  // a chunk

  const Array<Recurring>* plan_ = nullptr;
  Stage stage_ = Stage::kNone;
  uint32_t next_ = 0;     // of the plan, in this stage
  Array<Wanted> wanted_;  // by request, and one more, as the next ones
  Array<Tenure> tenures_;
  Array<uint8_t> taken_;     // 1: its place is taken
  Array<FenceId> fences_;    // of its bytes since they were free; not kept up while latest_ is 0
  Array<uint32_t> bounds_;   // units at which a place begins or ends, ascending
  Array<uint32_t> coarse_;   // for each 2^coarse_shift_ units the last bound at or below the first
  Array<uint64_t> live_;     // by bound: a taken place begins there
  Array<uint16_t> at_;       // by bound: its request
  Array<uint64_t> changes_;  // by bound: the tenant is another one from there on
  Array<uint16_t> tenant_;   // by bound, where it changes: who had the units last
  Array<uint16_t> before_;   // predecessors
  uint32_t freed_ = 0;       // the request whose block was freed last
  uint32_t expected_ = 0;    // the one whose block may be the next
  uint32_t coarse_shift_ = kFinest;
  FenceId fence_ = 0;   // of what was free when the places were taken over
  FenceId latest_ = 0;  // no fence here is greater
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_HELD_PLACES_H_
