// A block: a run of bytes of one arena that is live, cached or free. Blocks tile the arena in
// address order. Also the pool that blocks come from, and the tree that free ones are found in by
// size.
//
// Not here: any decision (arena_allocator.h). Threads: the owner of the allocator serialises.

#ifndef TIDEMARK_CORE_BLOCK_H_
#define TIDEMARK_CORE_BLOCK_H_

#include "core/units.h"

namespace tidemark::core {

struct Block {
  enum class State : uint8_t { kFree, kCached, kLive };

  Bytes offset = 0;
  Bytes size = 0;
  Bytes requested = 0;        // live: what the caller asked for
  FenceId fence = 0;          // free or cached: streams may use it until this passed
  LaunchNumber last_use = 0;  // live
  uint64_t tag = 0;           // live: the caller's own, and a second word of his
  uint64_t owner = 0;
  Block* previous = nullptr;  // neighbours in address order
  Block* next = nullptr;
  Block* left = nullptr;  // in the tree; links of the cached or the unmapped list
  Block* right = nullptr;
  uint32_t priority = 0;
  State state = State::kFree;
  bool small = false;   // inside a slab
  bool mapped = false;  // free: every byte lies in mapped chunks
  Bytes end() const { return offset + size; }
};

// Hands out blocks from arrays that are never given back before the pool dies.
class BlockPool {
 public:
  BlockPool() = default;
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // Makes sure that `count` calls of Take succeed. False: out of memory, nothing changed.
  bool Reserve(int count);
  Block* Take();  // needs a Reserve that covers it
  void Put(Block* block);

 private:
  struct Array;
  Array* arrays_ = nullptr;
  Block* free_ = nullptr;
  int free_count_ = 0;
  uint32_t random_ = 0x9e3779b9;
};

// Free blocks ordered by (size, offset): a treap, so no rebalancing bookkeeping.
class FreeTree {
 public:
  void Insert(Block* block) { root_ = Insert(root_, block); }
  void Remove(Block* block) { root_ = Remove(root_, block); }
  // The smallest block of at least `size` bytes, lowest address on ties; null when there is none.
  Block* AtLeast(Bytes size) const;
  // The next one in (size, offset) order.
  Block* After(const Block* block) const;
  Block* Largest() const;

 private:
  static bool Less(const Block* a, const Block* b);
  static Block* Insert(Block* root, Block* block);
  static Block* Remove(Block* root, Block* block);
  static Block* Merge(Block* low, Block* high);
  static void Split(Block* root, const Block* at, Block** low, Block** high);

  Block* root_ = nullptr;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BLOCK_H_
