#include "core/planner/range_max.h"

namespace tidemark::core::planner {

bool RangeMax::Start(uint32_t slots) {
  leaves_ = 1;
  while (leaves_ < slots) leaves_ *= 2;
  nodes_.Clear();
  return nodes_.Resize(2 * size_t{leaves_}, Node{0, 0});
}

void RangeMax::Settle() {
  for (uint32_t v = leaves_; v-- > 1;) SumUp(v);
}

// Up from both ends at once: what lies between them is added to as a whole, and what holds an end
// is summed up as soon as what is below it is done.
void RangeMax::Add(uint32_t from, uint32_t to, int64_t amount) {
  if (from >= to) return;
  uint32_t l = from + leaves_, r = to - 1 + leaves_;
  AddToAll(l, amount);
  if (l != r) AddToAll(r, amount);
  for (; l / 2 != r / 2; l /= 2, r /= 2) {
    if (l % 2 == 0) AddToAll(l + 1, amount);
    if (r % 2 == 1) AddToAll(r - 1, amount);
    SumUp(l / 2);
    SumUp(r / 2);
  }
  for (uint32_t v = l / 2; v >= 1; v /= 2) SumUp(v);
}

// Up from the end: what stands left of the way is before it, the nearest first.
RangeMax::Slot RangeMax::LastAbove(uint32_t end, int64_t limit) const {
  if (end == leaves_) return nodes_[1].max > limit ? LastIn(1, 0, limit) : Slot{kNone, 0};
  uint32_t v = end + leaves_;
  int64_t above = 0;  // added to all ancestors of v
  for (uint32_t up = v / 2; up >= 1; up /= 2) above += nodes_[up].added;
  for (; v > 1; v /= 2, above -= nodes_[v].added) {
    if (v % 2 == 1 && nodes_[v - 1].max + above > limit) return LastIn(v - 1, above, limit);
  }
  return {kNone, 0};
}

// The last one below v, which has one; so much was added to all ancestors of v.
RangeMax::Slot RangeMax::LastIn(uint32_t v, int64_t above, int64_t limit) const {
  while (v < leaves_) {
    above += nodes_[v].added;
    v = nodes_[2 * v + 1].max + above > limit ? 2 * v + 1 : 2 * v;
  }
  return {v - leaves_, nodes_[v].max + above};
}

}  // namespace tidemark::core::planner
