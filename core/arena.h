// The arena as its owner drives it: addresses (arena_allocator.h) and what lies beneath them
// (chunk_table.h), with every effect behind one seam of function pointers. The owner holds the
// physical memory; the arena says which chunk slots to map and unmap, and which fence is in the
// way.
//
// What happens to a request, in this order; each step is undone exactly when it fails:
//   1. a hole in mapped chunks, one without a pending fence if there is one;
//   2. new chunks, while what is mapped stays within the slack over the highest demand so far;
//   3. stitching: wholly free chunks from elsewhere are mapped under the new range;
//   4. new chunks beyond the slack, up to 0.5 % or 32 MiB, and while the next step does not do;
//   5. aliasing: wholly free chunks behind fences are mapped under the new range as well, which
//      whoever gets it waits for on the device; they leave their old place when the fences passed;
//   6. waiting for fences, then steps 1, 3 and 4 again;
//   7. eviction: live chunks' bytes move to host memory, and their chunks come under the new range;
//   8. host memory under what is still lacking of it;
//   9. a small request in any hole.
// While it moves chunks and too much is lost in chunks used in part, requests of 512 KiB or more go
// where they do the least harm, mapped or not, before step 1 (arena_choose.cc). What will last,
// such as optimizer state, goes apart from what will be gone, before all of them
// (arena_lasting.cc).
//
// From the first step 3 on the arena watches whether requests recur (placement_plan.h). Where they
// do, and a plan fits into what is mapped or may be, requests go to its places before step 1, and
// others go elsewhere as long as there is memory for it.
//
// Once it has followed one for a period, it holds the plan's bytes (arena_held.cc): such a request
// costs a fraction of any other.
//
// Not here: time, physical memory, threads. The owner serialises.

#ifndef TIDEMARK_CORE_ARENA_H_
#define TIDEMARK_CORE_ARENA_H_

#include "core/arena_allocator.h"
#include "core/array.h"
#include "core/chunk_table.h"
#include "core/held_places.h"
#include "core/placement_plan.h"
#include "core/transition.h"

namespace tidemark::core {

// The owner's side. Every function may fail; none may call the arena, except where it says so.
struct ArenaSeam {
  void* owner = nullptr;
  // Puts memory under the slots [first, first + count), all unmapped. False: under none of them.
  bool (*map)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
  // Takes the memory from under [first, first + count), all mapped, free and in one state, and
  // keeps it for the next `map`. False: it still lies under all of them.
  bool (*unmap)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
  // Chunks that `map` could place now without an `unmap` before. An estimate; `map` decides.
  ChunkIndex (*available)(void* owner) = nullptr;
  // Work of `stream` given to the device from now on waits for `fence`; for kAnyStream, all work.
  // False: not possible now, the memory stays unused.
  bool (*order)(void* owner, StreamId stream, FenceId fence) = nullptr;
  // Waits on the host until `fence` has passed, as far as possible. Returns what has passed.
  FenceId (*settle)(void* owner, FenceId fence) = nullptr;

  // What not every owner has; null: it does not.
  //
  // Tries to make `available` at least `count`. An owner that has it counts as available what it
  // holds already, which is mapped before anything is stitched. It may wait, and let others call
  // the arena meanwhile: the request in hand begins anew. Never called after `settle` or `evict`
  // within one request.
  void (*acquire)(void* owner, ChunkIndex count) = nullptr;
  // Moves the bytes of up to `count` chunks with live buffers to host memory, sets their state in
  // table() to kHost and counts the device chunks as available. Returns how many; 0 when that would
  // not be enough to serve a request that lacks `count` chunks.
  ChunkIndex (*evict)(void* owner, ChunkIndex count) = nullptr;
  // As `map`, with host memory.
  bool (*map_host)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
  // Puts the device chunks that lie under [from, from + count), all free, under [to, to + count) as
  // well, all unmapped: work in flight may still use them where they were, and `order` is called
  // before other work uses them where they are. From now on they count as lying there. False:
  // nothing has changed. Comes with `leave`.
  bool (*alias)(void* owner, ChunkIndex from, ChunkIndex to, ChunkIndex count) = nullptr;
  // [first, first + count) was `from`, and all work there has passed: takes the old mapping away.
  // False: it is still there.
  bool (*leave)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
};

struct ArenaOptions {
  // Chunks are taken without looking for free ones elsewhere while mapped bytes are at most
  // (1 + slack_permille / 1000) times the highest sum of live requests.
  uint32_t slack_permille = 4;
};

// Since Init. All in chunks, unless the name says otherwise.
struct ArenaCounters {
  uint64_t mapped = 0;
  uint64_t unmapped = 0;
  uint64_t stitched = 0;        // unmapped in one place to be mapped in another: remaps
  uint64_t largest_stitch = 0;  // for one request
  uint64_t aliased = 0;         // of those, moved while work was in flight
  uint64_t ordered_fences = 0;  // calls of `order`
  uint64_t settled_fences = 0;  // calls of `settle`
  uint64_t planned = 0;         // requests that got the place of a plan
  uint64_t chosen = 0;          // requests that got the place that does the least harm
  uint64_t undone = 0;          // mapped and taken back because a later map failed
  uint64_t on_host = 0;         // mapped to host memory for want of chunks
};

class Arena {
 public:
  // Addresses for `chunks` slots, none mapped. False: out of memory.
  bool Init(ChunkIndex chunks, const ArenaSeam& seam, const ArenaOptions& options = {});

  // A live block of at least `bytes` for work on `stream`, or null: then nothing has changed that a
  // later request would notice, but free chunks may have moved.
  Block* Allocate(Bytes bytes, StreamId stream = kAnyStream) {
    if (holes_on_host_) ReleaseHost();
    const bool small = bytes <= kSmallLimit;
    if (held_ && !small) return AllocateHeld(bytes, stream);
    const Request request{bytes, passed_, stream, false};
    if (small || !(plan_.on() || plan_.LooksAgain())) return AllocateAnywhere(request);
    return AllocateByPlan(request);
  }
  // `stream` is where the block was last used; kAnyStream when that is not known. Other streams may
  // have to wait for `fence` before they use its bytes. 0: nothing in flight touches them.
  void Free(Block* block, StreamId stream = kAnyStream, FenceId fence = 0) {
    if (fence > newest_) newest_ = fence;
    if (table_.host_chunks() != 0 && OnHost(block)) holes_on_host_ = true;
    Drop(block, fence, stream);
  }
  // Chunks that a request of `bytes` lacks at present.
  ChunkIndex Missing(Bytes bytes);
  // Fences up to `fence` have passed.
  void Passed(FenceId fence) {
    if (fence > passed_) passed_ = fence;
    allocator_.Passed(passed_);
  }
  FenceId passed() const { return passed_; }
  Block* Find(Bytes offset) const {
    if (!held_) return allocator_.Find(offset);
    Block* block = places_.Expected(offset);
    return block != nullptr ? block : FindBesideHeld(offset);
  }

  // Once per decay interval of the owner's choice: of the chunks that the highest demand since the
  // last call could have done without, half are unmapped, as far as they are free, so that the
  // owner can give them back. Returns how many.
  ChunkIndex Decay();
  // Unmaps up to `count` wholly free device chunks whose fences have passed. Returns how many.
  ChunkIndex Release(ChunkIndex count);
  // Takes away the old mappings of aliased chunks whose fences have passed. The arena does it
  // before it maps or unmaps for anything else.
  void LeaveOldPlaces();
  // Unmaps the wholly free chunks in host memory whose fences have passed: a buffer that was placed
  // there would have to come back with bytes that nobody wants. Allocate does it after such a free.
  void ReleaseHost();

  void Pin(Block* block, PinReason reason);
  // Whether a chunk of it is in host memory.
  bool OnHost(const Block* block) const;

  ChunkIndex mapped() const { return table_.device_chunks() + table_.host_chunks(); }
  ChunkTable& table() { return table_; }
  // With every block in address order. That costs a while where the arena holds a plan's bytes: not
  // for what is done in every step.
  ArenaAllocator& allocator() {
    if (held_) PutBack();
    return allocator_;
  }
  // Its sums, which are right at any time.
  const ArenaAllocator& sums() const { return allocator_; }
  AllocatorStats Stats() const { return allocator_.Stats(passed_, held_ ? &places_ : nullptr); }
  const ArenaCounters& counters() const { return counters_; }
  // Whether requests of the plan get their places without a search at present.
  bool holds_plan() const { return held_; }
  bool Validate() const { return allocator_.Validate(held_ ? &places_ : nullptr); }

 private:
  struct Range {
    ChunkIndex first = 0;
    ChunkIndex count = 0;
  };
  struct Search {
    ChunkState state = ChunkState::kDevice;
    Range keep = {};         // not in there
    bool kept_free = false;  // also in what the plan keeps free
    bool waiting = false;    // also behind fences that have not passed
  };
  static constexpr Bytes kAnyOffset = ArenaAllocator::kNowhere;
  static constexpr Bytes kChosenFrom = 512 * kKiB;
  static constexpr uint32_t kEvictsFor = 1 << 16;  // requests that the plan sees

  Block* Place(const Request& request) {
    return Ordered(allocator_.Allocate(request), request.stream);
  }
  // `block` once `stream` waits for its bytes, where it must; null, and the block is free again,
  // when that is not possible.
  Block* Ordered(Block* block, StreamId stream) {
    if (block == nullptr || !ArenaAllocator::MustWait(block, stream, passed_)) return block;
    return Order(block, stream) ? block : nullptr;
  }
  bool Order(Block* block, StreamId stream);
  void Drop(Block* block, FenceId fence, StreamId stream) {
    if (block->slot != 0) return FreeHeld(block, fence, stream);
    if (block->number != 0) plan_.Freed(block->number);
    allocator_.Free(block, fence, stream);
  }
  Block* AllocateAnywhere(const Request& request) {
    if (allocator_.Lasts(request.bytes)) {
      if (Block* lasting = PlaceLasting(request)) return lasting;
    }
    Block* block = request.bytes >= kChosenFrom && plan_.moves() ? PlaceChosen(request) : nullptr;
    if (block == nullptr) block = Place(request);
    return block != nullptr ? block : AllocateSlow(request);
  }
  Block* AllocateSlow(Request request);
  // Whether the owner acquires a little beyond the slack before chunks behind fences are moved.
  enum class Beyond : uint8_t { kNothing, kALittle };
  // `at`: there, or kAnyOffset.
  bool Extend(Bytes bytes, Bytes at, bool settled, Beyond beyond = Beyond::kALittle);
  bool PlanExtension(Bytes bytes, Bytes at, Extension* extension);
  ChunkIndex Wanted(const Extension& extension, Bytes bytes, ChunkIndex within,
                    Beyond beyond) const;
  bool RatherAliases(ChunkIndex more, Bytes bytes, Beyond beyond) const;
  // The highest demand so far, or what it is with `bytes` more.
  Bytes DemandWith(Bytes bytes) const {
    const Bytes demand = allocator_.requested() + bytes;
    return demand > allocator_.peak_requested() ? demand : allocator_.peak_requested();
  }
  ChunkIndex Within(Bytes bytes, uint32_t slacks = 1) const;
  ChunkIndex FreshFor(Bytes bytes) const;
  ChunkIndex Stitch(ChunkIndex count, const Extension& keep);
  ChunkIndex CountFree(ChunkIndex most, const Search& search) const;
  ChunkIndex Alias(ChunkIndex count, const Extension& to);
  bool AliasRange(Range from, ChunkIndex to);
  Range UnmappedIn(const Extension& within, ChunkIndex first, ChunkIndex most) const;
  void NoteMoved(ChunkIndex chunks);
  void Evict(ChunkIndex missing);
  bool MapExtension(const Extension& extension, ChunkIndex device);
  bool MapRange(Range range, ChunkState state);
  bool UnmapRange(Range range);
  void UndoMaps();
  static void CutOut(Range hole, ChunkIndex* first, ChunkIndex* end);
  bool NextFree(ChunkIndex below, ChunkIndex most, const Search& search, Range* range) const;
  bool HighestIn(ChunkState state, Range within, ChunkIndex most, Range* range) const;
  ChunkIndex UnmapFree(ChunkIndex count, const Search& search);
  ChunkIndex Available() const { return seam_.available(seam_.owner); }
  ChunkIndex SlotsFor(Bytes demand) const { return SlotsWithin(demand, 1); }
  ChunkIndex SlotsWithin(Bytes demand, uint32_t slacks) const;
  bool Settle();

  // In arena_plan.cc.
  Block* AllocateByPlan(const Request& request);
  Block* AllocatePlanned(const Request& request, Bytes place, RequestNumber number);
  Block* PlaceAt(const Request& request, Bytes offset, Beyond beyond = Beyond::kALittle);
  void AnswerPlan();
  void PackInPlace();
  Bytes RoomForPlan();
  bool FitsWhileItChanges(Bytes place);
  bool PlayPlaced(uint32_t time, const Recurring& request, Bytes place);
  bool PlayFrees();
  bool IsFreeBy(uint32_t time, Bytes offset, Bytes size) const;
  bool PlanKeepsFrom(Bytes bytes) const;
  void KeepForPlan();

  // In arena_choose.cc.
  Block* PlaceChosen(const Request& request);
  // Live chunks have to leave at present, or had to lately.
  bool Evicts() const {
    return table_.host_chunks() != 0 || plan_.number() - evicted_at_ < kEvictsFor;
  }

  // In arena_lasting.cc.
  Block* PlaceLasting(const Request& request);
  bool HasChunksForLasting(Bytes bytes, Bytes place);

  // In arena_held.cc.
  bool StartHolding(const Request& request);
  bool IsInPlace(Block* block);
  bool HoldPlan();
  bool HoldParts(Bytes end);
  void PutBack();
  void CountLater();
  void CountNow();
  void CountHeld(bool add);
  Block* AllocateHeld(Bytes bytes, StreamId stream);
  Block* AllocateBesideHeld(Bytes bytes, StreamId on);
  Block* NewHeld(uint32_t index, Bytes bytes, RequestNumber number);
  void FreeHeld(Block* block, FenceId fence, StreamId stream);
  void FreeCounted(Block* block, FenceId fence, StreamId stream);
  Block* FindBesideHeld(Bytes offset) const;

  ArenaSeam seam_;
  ArenaOptions options_;
  ChunkTable table_;
  ArenaAllocator allocator_;
  ArenaCounters counters_;
  PlacementPlan plan_;
  Bytes plan_base_ = 0;
  Transition transition_;
  HeldPlaces places_;       // of the plan
  uint32_t places_of_ = 0;  // plans() for which they were built
  bool missed_ = false;     // a request of the period did not get its place
  uint32_t missed_periods_ = 0;
  bool held_ = false;                     // requests get them without a search
  uint32_t evicted_at_ = 0 - kEvictsFor;  // the plan's request when live chunks had to leave
  Array<Range> undo_;                     // mapped for the request in hand
  FenceId passed_ = 0;
  FenceId newest_ = 0;          // the largest fence anything was freed with
  bool holes_on_host_ = false;  // a host chunk may have become wholly free
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ARENA_H_
