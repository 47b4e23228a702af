// Addresses inside one arena: who has which bytes. Small buffers share slabs of one chunk, mid ones
// lie best fit on a 512 B grid so that neighbours share boundary chunks, large ones start on a
// chunk. Freed blocks first wait in an exact-size cache, unmerged; the cache is folded back before
// new memory is asked for. Mapped holes come first, the lowest address on ties.
//
// The allocator maps nothing. Allocate() only uses mapped chunks; when it finds no place,
// PlanExtension() says which chunks to map, MarkMapped() tells that one was, and Allocate() is
// called again. So a failure on the way leaves nothing to undo. A freed block keeps its fence, and
// whoever gets those bytes gets the fence. Threads: none of its own; the owner serialises.

#ifndef TIDEMARK_CORE_ARENA_ALLOCATOR_H_
#define TIDEMARK_CORE_ARENA_ALLOCATOR_H_

#include <memory>

#include "core/block.h"
#include "core/chunk_table.h"
#include "core/units.h"

namespace tidemark::core {

// Chunks to map so that a request fits: those of [first, first + count) that are unmapped.
struct Extension {
  ChunkIndex first = 0;
  ChunkIndex count = 0;
  ChunkIndex missing = 0;  // unmapped ones among them
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

  // A live block of at least `bytes` in mapped chunks, or null. Where its `fence` is above
  // `passed`, streams may still use the bytes: nobody may touch them before that fence. With
  // `anywhere` a small request may use a hole outside the slabs: the last resort when no chunk can
  // be had.
  Block* Allocate(Bytes bytes, FenceId passed, bool anywhere = false);

  // Gives a live block back; streams may use it until `fence`. `block` is invalid afterwards.
  void Free(Block* block, FenceId fence);

  // The live block that holds the byte at `offset`, or null.
  Block* Find(Bytes offset) const;

  // Folds the cache and finds the place for `bytes` with the fewest chunks to map, the lowest
  // address on ties. False: the arena's addresses are used up, or host memory is.
  bool PlanExtension(Bytes bytes, Extension* extension);

  // Makes sure that `count` marks in a row succeed where the chunks allow it. False: out of memory.
  bool ReserveMarks(ChunkIndex count) { return pool_.Reserve(static_cast<int>(count) * 2 + 2); }
  // `chunk` was unmapped and wholly free, and is mapped now. False: out of host memory, not
  // recorded. The table's state is set by the caller.
  bool MarkMapped(ChunkIndex chunk);
  // `chunk` is mapped and wholly free (table: live 0), and will be unmapped. False: not so, or no
  // memory.
  bool MarkUnmapped(ChunkIndex chunk);
  // Fence of the free bytes of wholly free, mapped `chunk`. Call FoldCache first.
  FenceId FenceOf(ChunkIndex chunk) const;
  void FoldCache();

  // Blocks in address order, all states; for walks by the owner.
  Block* first() const { return first_; }

  Bytes requested() const { return requested_; }
  // The sums alone, at no cost; Stats() also walks the blocks.
  AllocatorStats Totals() const;
  AllocatorStats Stats(FenceId passed) const;

  // Every invariant, in time linear in blocks and chunks.
  bool Validate() const;

 private:
  struct SlabMap;
  struct Starts {
    Block* first = nullptr;   // lowest block that starts in the chunk
    SlabMap* slab = nullptr;  // live, cached and free blocks of a slab by position
  };
  static constexpr int kCacheBins = 256;
  static constexpr int kNodesPerCall = 4;  // most blocks that one public call creates
  struct CacheBin {
    Block* head = nullptr;
    Block* tail = nullptr;
  };

  Block* FromCache(Bytes size, bool small);
  Block* FromTree(FreeTree* tree, Bytes size, Bytes alignment, FenceId passed);
  bool AddSlab(FenceId passed);
  void DropSlab(Block* block);
  void MakeLive(Block* block, Bytes requested);
  void Release(Block* block);  // cached or live block becomes free and merges
  Block* Carve(Block* block, Bytes offset, Bytes size);
  Block* SplitAt(Block* block, Bytes offset);  // returns the upper part
  bool CanMerge(const Block* low, const Block* high) const;
  Block* MergeWithNeighbours(Block* block);
  void Absorb(Block* low, Block* high);
  void AddToIndex(Block* block);
  void RemoveFromIndex(Block* block);
  void NoteStart(Block* block);
  void ForgetStart(Block* block);
  Block* BlockAt(Bytes offset) const;
  void ConsiderRun(Block* first_of_run, Bytes size, Bytes alignment, Extension* best,
                   Bytes* best_offset) const;
  void Consider(Bytes offset, Bytes size, Extension* best, Bytes* best_offset) const;
  bool ValidateBlock(const Block* block) const;
  static int BinOf(Bytes size);
  FreeTree* TreeOf(const Block* block) { return block->small ? &small_ : &general_; }

  ChunkTable* table_ = nullptr;
  std::unique_ptr<Starts[]> starts_;
  BlockPool pool_;
  Block* first_ = nullptr;
  FreeTree general_;
  FreeTree small_;
  Block* unmapped_ = nullptr;
  CacheBin cache_[kCacheBins];
  uint64_t cached_ = 0;
  Bytes requested_ = 0;
  Bytes allocated_ = 0;
  uint64_t live_buffers_ = 0;
  uint64_t slabs_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ARENA_ALLOCATOR_H_
