// Addresses inside one arena: who has which bytes.
//
// Small buffers (up to 32 KiB) share slabs of one chunk; the shortest free run that fits is taken,
// of equal ones that in the fullest slab. Freed ones first wait in a cache by stream and exact
// size. Everything larger lies at the lowest address where it fits in mapped chunks. The last few
// that were freed are parked for a request of exactly their size; any other request merges them
// with their neighbours first: what waits longer drives others to higher addresses, which costs
// more in remaps than it saves in time.
//
// A buffer starts on a chunk where that is nearly free: its size is whole chunks, or its rounding
// fits in an allowance of 1/4096 of the highest demand so far. The others lie on a 512 B grid, so
// that neighbours share boundary chunks; so do whole chunks that look as if they will last, once
// what was left between such and others exceeds 1/512 of the demand.
//
// The allocator maps nothing. Allocate() only uses mapped chunks; when it finds no place,
// PlanExtension() says which chunks to map, MarkMapped() tells that they were, and Allocate() is
// called again. So a failure on the way leaves nothing to undo. A freed block keeps its fence, and
// whoever gets those bytes gets the fence. Threads: none of its own; the owner serialises.

#ifndef TIDEMARK_CORE_ARENA_ALLOCATOR_H_
#define TIDEMARK_CORE_ARENA_ALLOCATOR_H_

#include <memory>

#include "core/array.h"
#include "core/block.h"
#include "core/chunk_table.h"
#include "core/free_runs.h"
#include "core/held_places.h"
#include "core/hole_index.h"
#include "core/lasting.h"
#include "core/unit_bins.h"
#include "core/units.h"

namespace tidemark::core {

// Chunks to map so that a request fits: those of [first, first + count) that are unmapped.
struct Extension {
  ChunkIndex first = 0;
  ChunkIndex count = 0;
  ChunkIndex missing = 0;  // unmapped ones among them
};

struct Request {
  Bytes bytes = 0;
  FenceId passed = 0;            // fences up to here have passed
  StreamId stream = kAnyStream;  // on which the buffer is used first
  // The last resort when no chunk can be had: any hole will do, slabs and alignment forgotten.
  bool anywhere = false;
};

struct AllocatorStats {
  Bytes requested = 0;    // asked for by live buffers
  Bytes allocated = 0;    // after rounding
  Bytes waiting = 0;      // free, but behind a fence that has not passed
  Bytes free_mapped = 0;  // holes in mapped chunks
  Bytes largest_free_mapped = 0;
  uint64_t live_buffers = 0;
  uint64_t slabs = 0;
};

class ArenaAllocator {
 public:
  ArenaAllocator() = default;
  ~ArenaAllocator();
  ArenaAllocator(const ArenaAllocator&) = delete;
  ArenaAllocator& operator=(const ArenaAllocator&) = delete;

  // `table` outlives the allocator, has all chunks of the arena and none mapped. False: out of
  // memory.
  bool Init(ChunkTable* table);

  // A live block of at least `request.bytes` in mapped chunks, or null. Where MustWait() says so,
  // streams may still use the bytes: nobody may touch them before the block's fence.
  Block* Allocate(const Request& request);
  // The same at `offset`; null: not free there.
  Block* AllocateAt(const Request& request, Bytes offset);
  // Whether such a request will last (lasting.h).
  bool Lasts(Bytes bytes) const { return lasting_.Lasts(RoundUp(bytes, kBlockBytes)); }
  // Where one that does goes, mapped or not, for AllocateAt or an extension there.
  Bytes PlaceForLasting(Bytes bytes);
  // That is where `block` went.
  void TookForLasting(const Block* block) {
    if (first_lasting_ == 0) first_lasting_ = block->offset;
    after_lasting_ = block->end();
    lasting_.Taken(block->size);
  }
  // Whether a wholly free chunk is behind a fence that has not passed.
  bool ChunksWait() { return holes_.WholeChunksWait(passed_); }
  // Whether work on `stream` must be ordered after the block's fence.
  static bool MustWait(const Block* block, StreamId stream, FenceId passed) {
    return block->fence > passed && (stream == kAnyStream || block->stream != stream);
  }

  // Gives a live block back; streams other than `stream` may use it until `fence`. `block` is
  // invalid afterwards.
  void Free(Block* block, FenceId fence, StreamId stream = kAnyStream);

  // The live block that holds the byte at `offset`, or null.
  Block* Find(Bytes offset) const;
  // Whether the byte at `offset`, which is one of the arena, lies in a slab.
  bool InSlab(Bytes offset) const { return starts_[ChunkOf(offset)].slab != nullptr; }

  // Folds the cache and finds the place for `bytes` with the fewest chunks to map, the lowest
  // address on ties. False: the arena's addresses are used up, or host memory is.
  bool PlanExtension(Bytes bytes, Extension* extension);

  // The same for `offset` alone. False: not free there, or all of it is mapped.
  bool PlanExtensionAt(Bytes bytes, Bytes offset, Extension* extension);

  // Where `request`, larger than kSmallLimit, does the least harm of all places, mapped or not
  // (arena_choose.cc): for AllocateAt, or an extension there. `fresh`: chunks that it may take
  // beside those that are free. kNowhere: it needs more everywhere, or one of those has not passed.
  static constexpr Bytes kNowhere = ~Bytes{0};
  Bytes ChoosePlace(const Request& request, ChunkIndex fresh);
  // While no chunk is in host memory: bytes of chunks used in part that nobody has, but for those
  // that small requests share.
  Bytes LostInParts() const;

  // Keeps [first, first + count) for AllocateAt: others get a place there only as a last resort.
  void KeepFree(ChunkIndex first, ChunkIndex count) {
    kept_first_ = first;
    kept_count_ = count;
  }
  ChunkIndex kept_first() const { return kept_first_; }
  ChunkIndex kept_count() const { return kept_count_; }

  // Makes sure that the next mark succeeds where the chunks allow it. False: out of memory.
  bool ReserveMark() { return pool_.Reserve(kNodesPerCall + held_blocks_) && ReserveIndexes(); }
  // Fences up to `fence` have passed; requests say so as well.
  void Passed(FenceId fence) {
    if (fence > passed_) passed_ = fence;
  }
  // [first, first + count) was unmapped, and is mapped now. False: out of host memory, not
  // recorded. The table's state is set by the caller.
  bool MarkMapped(ChunkIndex first, ChunkIndex count = 1);
  // [first, first + count) is mapped and wholly free, and will be unmapped. False: not so, or no
  // memory.
  bool MarkUnmapped(ChunkIndex first, ChunkIndex count = 1);
  // The chunks of [from, from + count), mapped and wholly free, come under [to, to + count), which
  // was unmapped; work in flight may use them here and there. Who gets their bytes waits for their
  // fence, on any stream. What was `from` is nobody's until MarkLeft. False: as with the others.
  bool MarkAliased(ChunkIndex from, ChunkIndex to, ChunkIndex count);
  // The first of the blocks that were `from`; the next is its `right`.
  Block* leaving() const { return leaving_.head; }
  // One of them is unmapped now.
  void MarkLeft(Block* block);
  // Fence of the free bytes of wholly free, mapped `chunk`. Call FoldCache first.
  FenceId FenceOf(ChunkIndex chunk) const;
  void FoldCache();

  // The holes of at least `least` bytes that start below `end`, from the highest one down.
  HoleIndex::SearchDown HolesBelow(Bytes end, Bytes least) const { return {&holes_, least, end}; }

  // ---- Bytes left to a plan (arena_held_blocks.cc).
  // What may be left to it: holes, and what has a place in the plan.
  static bool MayHold(const Block* block) { return IsHole(block) || block->slot != 0; }
  // Makes sure that `parts` of [begin, end) can be held. False: out of memory.
  bool ReserveHold(Bytes begin, Bytes end, uint32_t parts);
  // Takes all such of one part, [begin, end), out of the blocks in address order.
  void Hold(Bytes begin, Bytes end);
  // The greatest of what was free there.
  FenceId held_fence() const { return held_fence_; }
  // Who may use bytes when.
  struct Use {
    FenceId fence = 0;
    StreamId stream = kAnyStream;
  };
  // A live block at `offset` of what is held, which nobody else has. Call ReserveMark first, and
  // CountHeld() for it where held_counted().
  Block* BeginHeld(Bytes offset, Bytes bytes, uint32_t number) {
    const Bytes size = RoundUp(bytes, kBlockBytes);
    const bool charged = offset % kChunkBytes == 0;
    ++held_blocks_;
    Count(bytes, size, RoundingOf(size, charged));
    Block* block = pool_.Take();
    block->BeLive(offset, size, bytes);
    block->charged = charged;
    block->number = number;
    return block;
  }
  // Whether that is all there is to do for one.
  bool CanBeginHeld() const {
    return !held_counted_ && pool_.free_count() >= kNodesPerCall + held_blocks_ &&
           holes_.room() >= pool_.made();
  }
  // Its end, and who may use the bytes afterwards. Call CountHeld() for it first.
  Use EndHeld(Block* block, FenceId fence, StreamId stream) {
    --held_blocks_;
    CountOut(block);
    AddFence(block, fence, stream);
    Use use;
    if (block->fence > passed_) {
      use = {block->fence, block->stream};
      AddFence(&gone_, use.fence, use.stream);
    }
    pool_.Put(block);
    return use;
  }
  // Whether the table counts the blocks that live in what is held, which is a good part of what
  // they cost. A change is for the caller to make up for, with CountHeld() for each of them.
  bool held_counted() const { return held_counted_; }
  void SetHeldCounted(bool counted) { held_counted_ = counted; }
  void CountHeld(const Block* block, bool add);
  // What is held is free again; then Restore() for each block that lives there.
  void Unhold();
  void Restore(Block* block);

  // Blocks in address order, all states; for walks by the owner.
  Block* first() const { return first_; }
  Block* BlockAt(Bytes offset) const;

  Bytes requested() const { return requested_; }
  Bytes allocated() const { return allocated_; }
  Bytes peak_requested() const { return peak_requested_; }
  // The most bytes that were live at once since the last call.
  Bytes TakeIntervalPeak() {
    const Bytes peak = interval_peak_;
    interval_peak_ = allocated_;
    return peak;
  }
  // The sums alone; Stats() also walks the blocks.
  AllocatorStats Totals() const;
  // `places`: who lives in what is held.
  AllocatorStats Stats(FenceId passed, const HeldPlaces* places = nullptr) const;

  // Every invariant, in time linear in blocks and chunks. `places`: who lives in what is held.
  bool Validate(const HeldPlaces* places = nullptr) const;

 private:
  class PlaceSearch;
  struct SlabMap;
  struct Starts {
    Block* first = nullptr;   // lowest block that starts in the chunk
    SlabMap* slab = nullptr;  // live, cached and free blocks of a slab by position
  };
  static constexpr int kCacheBins = 256;
  static constexpr int kParked = 4;
  static constexpr int kNodesPerCall = 4;  // most blocks that one public call creates

  Block* FromCache(Bytes size, StreamId stream);
  Block* FromParked(Bytes size, StreamId stream);
  Block* FromParkedAt(Bytes size, Bytes offset);
  void TakeParked(int i);
  Block* FromSlabs(Bytes size, StreamId stream);
  Block* FromBins(Bytes size, StreamId stream);
  Block* FromHoles(Bytes size, Bytes alignment, StreamId stream);
  Bytes OffsetIn(const Block* hole, Bytes size, Bytes alignment) const;
  bool InKept(Bytes offset, Bytes size) const {
    return kept_count_ != 0 && LastChunkOf(offset, size) >= kept_first_ &&
           ChunkOf(offset) < kept_first_ + kept_count_;
  }
  Block* FromAnywhere(Bytes size, StreamId stream);
  Block* Fullest(uint32_t units, StreamId stream) const;
  bool Waits(const Block* block, StreamId stream) const { return MustWait(block, stream, passed_); }
  Bytes AlignmentFor(Bytes size, Bytes requested) const;
  bool AddSlab(StreamId stream);
  void DropSlab(Block* block);
  void MakeLive(Block* block, const Request& request) {
    block->state = Block::State::kLive;
    block->requested = request.bytes;
    block->number = 0;
    block->charged = !block->small & (block->offset % kChunkBytes == 0);
    Count(request.bytes, block->size, RoundingOf(block->size, block->charged));
  }
  // One more live buffer.
  void Count(Bytes requested, Bytes size, Bytes rounding) {
    const Bytes all_requested = requested_ + requested;
    const Bytes all = allocated_ + size;
    requested_ = all_requested;
    allocated_ = all;
    if (all_requested > peak_requested_) peak_requested_ = all_requested;
    if (all > interval_peak_) interval_peak_ = all;
    ++live_buffers_;
    rounding_ += rounding;
  }
  // Without a branch on what no processor foresees.
  static Bytes RoundingOf(Bytes size, bool charged) {
    return (Bytes{0} - size) % kChunkBytes & (Bytes{0} - Bytes{charged});
  }
  void CountOut(Block* block) {
    requested_ -= block->requested;
    allocated_ -= block->size;
    --live_buffers_;
    rounding_ -= RoundingOf(block->size, block->charged);
    block->charged = false;
  }
  Block* Choose(const Request& request, Bytes size, bool small);
  bool Keep(Block* block);
  // Whatever blocks were made for, each may become a hole, or unmapped.
  bool ReserveIndexes() {
    return holes_.room() >= pool_.made() ||
           (runs_.Reserve(pool_.made()) && holes_.Reserve(pool_.made()));
  }
  void FoldParked();
  void FoldBin(int bin);
  // To a Block or a Use: what it already waits for stays, unless it has passed.
  template <typename Waiting>
  void AddFence(Waiting* to, FenceId fence, StreamId stream) const {
    if (fence <= passed_) return;
    to->stream = to->fence <= passed_ || to->stream == stream ? stream : kAnyStream;
    if (fence > to->fence) to->fence = fence;
  }
  void Release(Block* block);  // cached or live block becomes free and merges
  Block* Carve(Block* block, Bytes offset, Bytes size);
  Block* TakeAt(HoleIndex::Place place, Block* hole, Bytes offset, Bytes size);
  Block* SplitAt(Block* block, Bytes offset);  // returns the upper part
  // Slabs stay apart: each must be able to become a plain chunk again.
  static bool CanMerge(const Block* low, const Block* high) {
    if (low == nullptr || low->state != Block::State::kFree) return false;
    if (high == nullptr || high->state != Block::State::kFree) return false;
    if (low->small != high->small || low->mapped != high->mapped) return false;
    return !low->small || high->offset % kChunkBytes != 0;
  }
  Block* MergeWithNeighbours(Block* block);
  void ReturnHole(Block* block);
  void Absorb(Block* low, Block* high);
  void AddToIndex(Block* block);
  void RemoveFromIndex(Block* block);
  bool Mark(ChunkIndex first, ChunkIndex count, bool mapped);
  Block* CutOut(ChunkIndex first, ChunkIndex count, bool mapped);
  void NoteStart(Block* block);
  void ForgetStart(Block* block);
  void ConsiderRun(const FreeRuns::Run& run, Bytes size, Bytes alignment, Extension* best,
                   Bytes* best_offset) const;
  void Consider(Bytes offset, Bytes size, Extension* best, Bytes* best_offset) const;
  void AddHeldTo(AllocatorStats* stats, FenceId passed, const HeldPlaces& places) const;
  void SplitHole(Bytes at);
  Block* HoldRun(Block* first, Bytes end);
  void LinkNeighbours(Block* block);
  bool ValidateBlock(const Block* block) const;
  bool ValidateIndexes() const;
  static bool IsHole(const Block* block) {
    return block->state == Block::State::kFree && block->mapped && !block->small;
  }
  void NoteRun();
  // Less than a chunk that is free between the block and the one before.
  static Bytes GapBefore(const Block* block) {
    const Block* gap = block->previous;
    return gap != nullptr && IsHole(gap) && gap->size < kChunkBytes ? gap->size : 0;
  }
  static int BinOf(Bytes size, StreamId stream);

  ChunkTable* table_ = nullptr;
  std::unique_ptr<Starts[]> starts_;
  Array<uint64_t> start_bits_;  // chunks in which a block starts
  BlockPool pool_;
  Block* first_ = nullptr;
  HoleIndex holes_;
  UnitBins bins_;  // free runs of slabs
  FreeRuns runs_;  // of free blocks that are not all mapped
  BlockList leaving_;
  Lasting lasting_;
  bool in_run_ = false;      // more than a little is live, or was
  Bytes first_lasting_ = 0;  // where the first one that lasted lay
  Bytes after_lasting_ = 0;  // where the last one ends
  BlockList cache_[kCacheBins];
  uint64_t cache_bits_[kCacheBins / 64] = {};  // bins that are not empty
  uint64_t cached_ = 0;                        // blocks there
  Bytes cached_bytes_ = 0;
  Block* parked_[kParked] = {};  // oldest first
  int parked_count_ = 0;
  int held_blocks_ = 0;  // that live in what is held
  bool held_counted_ = true;
  Bytes held_begin_ = 0;
  Bytes held_end_ = 0;
  FenceId held_fence_ = 0;
  Use gone_;  // of all blocks that ended in what is held
  ChunkIndex kept_first_ = 0;
  ChunkIndex kept_count_ = 0;
  FenceId passed_ = 0;
  Bytes rounding_ = 0;  // that live blocks were charged with
  Bytes gaps_ = 0;      // left before whole chunks that may last
  Bytes requested_ = 0;
  Bytes peak_requested_ = 0;
  Bytes allocated_ = 0;
  Bytes interval_peak_ = 0;
  uint64_t live_buffers_ = 0;
  uint64_t slabs_ = 0;
  SlabMap* spare_slab_ = nullptr;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ARENA_ALLOCATOR_H_
