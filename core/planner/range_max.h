// Amounts in a row of slots: adds to runs of them, and finds the last one above a limit, each in
// logarithmic time. A tree of maxima, whose nodes hold what was added to all below them. Threads:
// none of its own.

#ifndef TIDEMARK_CORE_PLANNER_RANGE_MAX_H_
#define TIDEMARK_CORE_PLANNER_RANGE_MAX_H_

#include <algorithm>
#include <cstdint>

#include "core/array.h"
#include "core/planner/timeline.h"

namespace tidemark::core::planner {

class RangeMax {
 public:
  // So many slots of 0; then values by Set(), and Settle() before anything else. False: no host
  // memory.
  [[nodiscard]] bool Start(uint32_t slots);
  void Set(uint32_t slot, int64_t amount) { nodes_[leaves_ + slot].max = amount; }
  void Settle();

  void Add(uint32_t from, uint32_t to, int64_t amount);  // to slots from .. to - 1
  // The last slot before `end` with more than `limit`, and how much; kNone if there is none.
  struct Slot {
    uint32_t at;
    int64_t amount;
  };
  Slot LastAbove(uint32_t end, int64_t limit) const;

 private:
  struct Node {
    int64_t max;    // of its children, plus ...
    int64_t added;  // ... what was added to all below it
  };
  Slot LastIn(uint32_t v, int64_t above, int64_t limit) const;
  void AddToAll(uint32_t v, int64_t amount) {
    nodes_[v].max += amount;
    nodes_[v].added += amount;
  }
  void SumUp(uint32_t v) {
    nodes_[v].max = std::max(nodes_[2 * v].max, nodes_[2 * v + 1].max) + nodes_[v].added;
  }

  uint32_t leaves_ = 0;
  Array<Node> nodes_;  // the children of v are 2 v and 2 v + 1; the slots are the leaves
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_RANGE_MAX_H_
