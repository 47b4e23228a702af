// Heaps of (key, piece) in an Array, with the largest or the smallest key on top; ties go to the
// smallest piece, so that the order is the same everywhere. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_HEAP_H_
#define TIDEMARK_CORE_PLANNER_HEAP_H_

#include <algorithm>
#include <cstdint>

#include "core/array.h"

namespace tidemark::core::planner {

struct FarthestOnTop {
  // As one number, since which of two is larger cannot be foreseen: no branch for it.
  template <typename Entry>
  static uint64_t Joined(const Entry& a) {
    return uint64_t{a.key} << 32 | ~a.piece;
  }
  template <typename Entry>
  bool operator()(const Entry& a, const Entry& b) const {
    return Joined(a) < Joined(b);
  }
};
struct SoonestOnTop {
  template <typename Entry>
  bool operator()(const Entry& a, const Entry& b) const {
    return (uint64_t{a.key} << 32 | a.piece) > (uint64_t{b.key} << 32 | b.piece);
  }
};

// False: no host memory.
template <typename Order, typename Heap, typename Entry>
[[nodiscard]] bool PushHeap(Heap* heap, const Entry& entry) {
  if (!heap->Append(entry)) return false;
  std::push_heap(heap->begin(), heap->end(), Order());
  return true;
}
template <typename Order, typename Heap>
void PopHeap(Heap* heap) {
  std::pop_heap(heap->begin(), heap->end(), Order());
  (void)heap->Resize(heap->size() - 1);  // shrinks
}

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_HEAP_H_
