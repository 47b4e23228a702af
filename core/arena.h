// The arena as its owner drives it: addresses (arena_allocator.h) and what lies beneath them
// (chunk_table.h), with every effect behind one seam of function pointers. The owner holds the
// physical memory; the arena says which chunk slots to map and unmap, and which fence is in the
// way.
//
// What happens to a request, in this order; each step is undone exactly when it fails:
//   1. a hole in mapped chunks, one without a pending fence if there is one;
//   2. new chunks, while what is mapped stays within the slack over the highest demand so far;
//   3. stitching: wholly free chunks from elsewhere are mapped under the new range;
//   4. new chunks beyond the slack;
//   5. waiting for fences, then steps 1, 3 and 4 again;
//   6. a small request in any hole.
//
// Not here: time, physical memory, threads. The owner serialises.

#ifndef TIDEMARK_CORE_ARENA_H_
#define TIDEMARK_CORE_ARENA_H_

#include "core/arena_allocator.h"
#include "core/array.h"
#include "core/chunk_table.h"

namespace tidemark::core {

// The owner's side. Every function may fail; none may call the arena.
struct ArenaSeam {
  void* owner = nullptr;
  // Puts memory under the slots [first, first + count), all unmapped. False: under none of them.
  bool (*map)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
  // Takes the memory from under [first, first + count), all mapped and free, and keeps it for the
  // next `map`. False: it still lies under all of them.
  bool (*unmap)(void* owner, ChunkIndex first, ChunkIndex count) = nullptr;
  // Chunks that `map` could place now without an `unmap` before. An estimate; `map` decides.
  ChunkIndex (*available)(void* owner) = nullptr;
  // Work of `stream` given to the device from now on waits for `fence`; for kAnyStream, all work.
  // False: not possible now, the memory stays unused.
  bool (*order)(void* owner, StreamId stream, FenceId fence) = nullptr;
  // Waits on the host until `fence` has passed, as far as possible. Returns what has passed.
  FenceId (*settle)(void* owner, FenceId fence) = nullptr;
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
  uint64_t ordered_fences = 0;  // calls of `order`
  uint64_t settled_fences = 0;  // calls of `settle`
  uint64_t undone = 0;          // mapped and taken back because a later map failed
};

class Arena {
 public:
  // Addresses for `chunks` slots, none mapped. False: out of memory.
  bool Init(ChunkIndex chunks, const ArenaSeam& seam, const ArenaOptions& options = {});

  // A live block of at least `bytes` for work on `stream`, or null: then nothing has changed that a
  // later request would notice, but free chunks may have moved.
  Block* Allocate(Bytes bytes, StreamId stream = kAnyStream);
  // `stream` is where the block was last used; kAnyStream when that is not known. Other streams may
  // have to wait for `fence` before they use its bytes. 0: nothing in flight touches them.
  void Free(Block* block, StreamId stream = kAnyStream, FenceId fence = 0);
  // Fences up to `fence` have passed.
  void Passed(FenceId fence) {
    if (fence > passed_) passed_ = fence;
  }
  FenceId passed() const { return passed_; }
  Block* Find(Bytes offset) const { return allocator_.Find(offset); }

  // Once per decay interval of the owner's choice: of the chunks that the highest demand since the
  // last call could have done without, half are unmapped, as far as they are free, so that the
  // owner can give them back. Returns how many.
  ChunkIndex Decay();
  // Unmaps up to `count` wholly free chunks whose fences have passed. Returns how many.
  ChunkIndex Release(ChunkIndex count);

  void Pin(Block* block, PinReason reason);

  ChunkIndex mapped() const { return table_.device_chunks() + table_.host_chunks(); }
  ChunkTable& table() { return table_; }
  ArenaAllocator& allocator() { return allocator_; }
  const ArenaCounters& counters() const { return counters_; }
  bool Validate() const { return allocator_.Validate(); }

 private:
  struct Range {
    ChunkIndex first = 0;
    ChunkIndex count = 0;
  };

  Block* Place(const Request& request);
  Block* AllocateSlow(Request request);
  bool Extend(Bytes bytes, bool settled);
  ChunkIndex Stitch(ChunkIndex count, const Extension& keep);
  bool MapExtension(const Extension& extension);
  bool MapRange(Range range);
  bool UnmapRange(Range range);
  void UndoMaps();
  bool NextFree(ChunkIndex below, ChunkIndex most, const Extension* keep, Range* range) const;
  ChunkIndex SlotsFor(Bytes demand) const;
  bool Settle();

  ArenaSeam seam_;
  ArenaOptions options_;
  ChunkTable table_;
  ArenaAllocator allocator_;
  ArenaCounters counters_;
  Array<Range> undo_;  // mapped for the request in hand
  FenceId passed_ = 0;
  FenceId newest_ = 0;  // the largest fence anything was freed with
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ARENA_H_
