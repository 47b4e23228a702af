// A block: a run of bytes of one arena that is live, cached or free. Blocks tile the arena in
// address order. Also the pool that blocks come from.
//
// Not here: any decision (arena_allocator.h). Threads: the owner of the allocator serialises.

#ifndef TIDEMARK_CORE_BLOCK_H_
#define TIDEMARK_CORE_BLOCK_H_

#include "core/units.h"

namespace tidemark::core {

struct alignas(64) Block {
  // kHeld: bytes that the allocator left to a plan (arena_held_blocks.cc); those that live there
  // are not among the blocks in address order. kLeaving: the chunks were moved, but work in flight
  // may still use them here (arena_alias.cc).
  enum class State : uint8_t { kFree, kCached, kLive, kHeld, kLeaving };

  // One line of the processor's cache: what each request and free touches.
  Bytes offset = 0;
  Bytes size = 0;
  State state = State::kFree;
  bool small = false;    // inside a slab
  bool mapped = false;   // free: every byte lies in mapped chunks
  bool charged = false;  // live: its rounding to chunks counts against the allocator's allowance
  uint8_t kind = 0;      // live: what it is for, in the caller's words
  uint16_t slot = 0;     // live: 1 + its request in the plan that holds its bytes; 0: none
  StreamId stream = kAnyStream;  // who may use the bytes without waiting for `fence`
  // Live: of its request, for PlacementPlan; 0: not seen by it. Free and not mapped: its entry in
  // FreeRuns.
  uint32_t number = 0;
  FenceId fence = 0;          // streams may use the bytes until this passed; live: former users
  Bytes requested = 0;        // live: what the caller asked for
  Block* previous = nullptr;  // neighbours in address order
  Block* next = nullptr;

  Block* left = nullptr;  // links of the list it is in: a cache bin, a size bin, the leaving ones
  Block* right = nullptr;
  // Live: the caller's own, as `kind` is. He sets what he reads; a new block has what it had
  // before.
  LaunchNumber last_use = 0;
  uint64_t tag = 0;
  uint64_t owner = 0;
  uint64_t birth = 0;  // from Iteration::Birth()
  Bytes end() const { return offset + size; }
  // Chunks that lie wholly inside it.
  ChunkIndex WholeChunks() const {
    const Bytes first = (offset + kChunkBytes - 1) / kChunkBytes;
    const Bytes last = end() / kChunkBytes;
    return last > first ? static_cast<ChunkIndex>(last - first) : 0;
  }

  // Everything that is the arena's is as in a block just made, but for the links.
  void Reset() {
    BeLive(0, 0, 0);
    state = State::kFree;
  }
  // The same for one that is live.
  void BeLive(Bytes begin, Bytes bytes, Bytes asked) {
    offset = begin;
    size = bytes;
    state = State::kLive;
    small = mapped = charged = false;
    slot = 0;
    stream = kAnyStream;
    number = 0;
    fence = 0;
    requested = asked;
    previous = next = nullptr;
  }
};

// Free, and not in a slab; a null block is not.
inline bool IsFreeForAll(const Block* block) {
  return block != nullptr && block->state == Block::State::kFree && !block->small;
}

// Hands out blocks from arrays that are never given back before the pool dies.
class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Makes sure that `count` calls of Take succeed. False: out of memory, nothing changed.
  bool Reserve(int count) { return free_count_ >= count || Grow(count); }
  int free_count() const { return free_count_; }
  // Blocks that were ever made.
  size_t made() const { return made_; }
  // Needs a Reserve that covers it. What the block says is left over from before.
  Block* Take() {
    Block* block = free_;
    free_ = block->next;
    --free_count_;
    return block;
  }
  void Put(Block* block) {
    block->next = free_;
    free_ = block;
    ++free_count_;
  }

 private:
  static constexpr int kAtOnce = 255;
  struct Blocks;
  bool Grow(int count);

  Blocks* arrays_ = nullptr;
  Block* free_ = nullptr;
  int free_count_ = 0;
  size_t made_ = 0;
};

// A list of blocks through `left` and `right`; a block is in at most one.
struct BlockList {
  Block* head = nullptr;
  Block* tail = nullptr;

  void Append(Block* block) {
    block->left = tail;
    block->right = nullptr;
    (tail != nullptr ? tail->right : head) = block;
    tail = block;
  }
  void Remove(Block* block) {
    (block->left != nullptr ? block->left->right : head) = block->right;
    (block->right != nullptr ? block->right->left : tail) = block->left;
  }
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BLOCK_H_
