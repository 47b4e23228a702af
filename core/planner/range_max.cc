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

RangeMax::Slot RangeMax::LastAbove(uint32_t end, int64_t limit) const {
  struct Visit {
    uint32_t v, from, size;
    int64_t above;  // added to all of its ancestors
  };
  Visit stack[80];
  int depth = 0;
  stack[depth++] = {1, 0, leaves_, 0};
  while (depth > 0) {
    const Visit at = stack[--depth];
    const int64_t most = nodes_[at.v].max + at.above;
    if (at.from >= end || most <= limit) continue;
    if (at.size == 1) return {at.from, most};
    const int64_t above = at.above + nodes_[at.v].added;
    stack[depth++] = {2 * at.v, at.from, at.size / 2, above};
    stack[depth++] = {2 * at.v + 1, at.from + at.size / 2, at.size / 2, above};
  }
  return {kNone, 0};
}

}  // namespace tidemark::core::planner
