#include "core/planner/horizon.h"

#include <algorithm>

namespace tidemark::core::planner {

// Two iterations in a row: in the first the windows that go across the iteration's end are opened,
// in the second each operation sees all that is open before it.
bool Horizon::Build(const Timeline& timeline, Bytes budget) {
  const uint32_t n = timeline.ops();
  if (!open_.Start(2 * n)) return false;
  ops_ = n;
  returning_.Clear();
  if (!levels_.Resize(size_t{n} * kLevels) || !returning_.Resize(n, 0)) return false;
  for (uint32_t i = 0; i < 2 * n; ++i) {
    open_.Set(i, static_cast<int64_t>(timeline.floor(i % n)));
  }
  open_.Settle();

  // Windows by the operation that ends them.
  Array<uint32_t> first, list;
  if (!first.Resize(n + 1, 0) || !list.Resize(timeline.uses())) return false;
  Array<BufferIndex> owner;
  if (!owner.Resize(timeline.uses())) return false;
  for (BufferIndex b = 0; b < timeline.buffers(); ++b) {
    for (uint32_t u = timeline.first_use(b); u < timeline.first_use(b + 1); ++u) {
      owner[u] = b;
      const Use& use = timeline.use(u);
      if (!timeline.CanMove(b) || !timeline.IsOpen(use)) continue;
      ++first[use.next % n];
      returning_[use.next % n] += timeline.buffer(b).bytes;
    }
  }
  uint32_t end = 0;
  for (uint32_t& at : first) at = end += at;
  for (uint32_t u = 0; u < timeline.uses(); ++u) {
    const Use& use = timeline.use(u);
    if (timeline.CanMove(owner[u]) && timeline.IsOpen(use)) list[--first[use.next % n]] = u;
  }
  const int64_t limit = budget > Bytes{INT64_MAX} ? INT64_MAX : static_cast<int64_t>(budget);
  for (uint32_t i = 0; i < 2 * n; ++i) {
    for (uint32_t k = first[i % n]; k < first[i % n + 1]; ++k) {
      const Use& use = timeline.use(list[k]);
      const uint32_t length = use.next - use.op;
      const uint32_t from = length > i ? 0 : i - length + 1;
      open_.Add(from, i, static_cast<int64_t>(timeline.buffer(owner[list[k]]).bytes));
    }
    if (i < n) continue;
    FillLevels(i, limit);
  }
  return true;
}

void Horizon::FillLevels(uint32_t slot, int64_t limit) {
  const uint32_t op = slot - ops_;
  Level* levels = &levels_[size_t{op} * kLevels];
  const auto step = static_cast<int64_t>(returning_[op] / kLevels);
  int64_t excess = 0;
  uint32_t end = slot;
  for (uint32_t k = 0; k < kLevels; ++k) {
    const RangeMax::Slot above = end == 0 || excess > INT64_MAX - limit
                                     ? RangeMax::Slot{kNone, 0}
                                     : open_.LastAbove(end, limit + excess);
    const uint32_t lag = above.at == kNone ? ops_ : std::min(ops_, slot - above.at - 1);
    levels[k] = {lag, static_cast<Bytes>(excess)};
    if (above.at == kNone) {
      end = 0;
      continue;
    }
    excess = std::max(above.amount - limit, excess + step);
    end = above.at;
  }
}

Bytes Horizon::Excess(uint32_t use, uint32_t now) const {
  const uint32_t op = use % ops_;
  const Level* levels = &levels_[size_t{op} * kLevels];
  for (uint32_t k = 0; k < kLevels; ++k) {
    if (use - now <= levels[k].lag) return levels[k].excess;
  }
  return returning_[op];
}

}  // namespace tidemark::core::planner
