// Where a request fits if chunks are mapped for it: the runs of free blocks, mapped or not, that
// hold an unmapped one, each as its two ends in one array, so that to look for those of a length
// costs a few instructions each and touches no block.
//
// A change next to an unmapped block only marks its entry; who asks next walks those runs again.
// So what comes and goes between two questions costs nearly nothing.
//
// Not here: which place in a run (arena_choose.cc, arena_mapping.cc). Threads: none of its own.

#ifndef TIDEMARK_CORE_FREE_RUNS_H_
#define TIDEMARK_CORE_FREE_RUNS_H_

#include "core/array.h"
#include "core/block.h"

namespace tidemark::core {

class FreeRuns {
 public:
  // One for each unmapped block; that of the lowest in a run stands for it, the others are empty.
  struct Run {
    Block* lowest = nullptr;  // the unmapped block
    uint32_t begin = 0;       // in units of 512 B
    uint32_t end = 0;

    Bytes offset() const { return Bytes{begin} * kBlockBytes; }
    Bytes size() const { return Bytes{end - begin} * kBlockBytes; }
    // Its lowest block, which is mapped or the lowest unmapped one.
    const Block* first() const {
      return IsFreeForAll(lowest->previous) ? lowest->previous : lowest;
    }
  };

  // Room for so many unmapped blocks. False: out of memory, nothing changed.
  bool Reserve(size_t blocks) { return runs_.Reserve(blocks); }
  // Needs room for it.
  void Add(Block* unmapped);
  void Remove(Block* unmapped);
  // `hole` is or was free, and its neighbours are what they were then or are now.
  void Changed(const Block* hole) {
    if (IsUnmapped(hole->previous)) Mark(hole->previous);
    if (IsUnmapped(hole->next)) Mark(hole->next);
  }
  // Valid until one of them changes.
  const Array<Run>& All() {
    if (marked_ != 0) WalkMarked();
    return runs_;
  }

  // `unmapped`: how many such blocks there are.
  bool Validate(size_t unmapped) const;

 private:
  static constexpr uint32_t kMarked = ~uint32_t{0};  // as `begin`

  static bool IsUnmapped(const Block* block) { return IsFreeForAll(block) && !block->mapped; }
  static Block* LowestOf(Block* unmapped);
  static Run RunFrom(Block* lowest);
  void Mark(const Block* unmapped) {
    Run& run = runs_[unmapped->number];
    if (run.begin == kMarked) return;
    run.begin = run.end = kMarked;
    ++marked_;
  }
  void Set(const Run& run, const Block* unmapped);
  void WalkMarked();
  void Walk(Block* unmapped);
  bool WillBeWalked(const Block* lowest) const;

  Array<Run> runs_;
  size_t marked_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_FREE_RUNS_H_
