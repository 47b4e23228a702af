#include "core/planner/fluid_step.h"

#include <algorithm>

namespace tidemark::core::planner {

bool FluidStep::Build(const Timeline& timeline, const Machine& machine, size_t most) {
  const uint32_t n = timeline.ops();
  if (!demand.Resize(n) || !duration.Resize(n)) return false;
  for (OpIndex i = 0; i < n; ++i) {
    const Bytes live = timeline.live(i);
    demand[i] = static_cast<double>(live - std::min(live, machine.device_budget));
    duration[i] = static_cast<double>(timeline.step().ops[i].duration);
  }
  for (BufferIndex b = 0; b < timeline.buffers() && size <= most; ++b) {
    if (timeline.CanMove(b) && !AddChains(timeline, b)) return false;
  }
  return true;
}

// A new chain at each write; from the first one on, as far as the buffer outlives the step.
bool FluidStep::AddChains(const Timeline& timeline, BufferIndex b) {
  const uint32_t first = timeline.first_use(b), end = timeline.first_use(b + 1);
  const bool persistent = timeline.buffer(b).persistent;
  uint32_t start = first;
  while (start < end && !timeline.use(start).write) ++start;
  const bool is_clean = persistent && start == end;
  if (!persistent || is_clean) start = first;
  FluidChain chain;
  for (uint32_t k = 0; k < end - first; ++k) {
    const uint32_t u = start + k < end ? start + k : start + k - (end - first);
    const uint32_t base = u < start ? timeline.ops() : 0;
    const Use& use = timeline.use(u);
    if (use.write || k == 0) {
      if (chain.gap_count != 0 && !chains.Append(chain)) return false;
      chain = {b, use.op + base + 1, is_clean, static_cast<uint32_t>(gaps.size()), 0};
    }
    if (!timeline.IsOpen(use) || !IsTight(use)) continue;
    if (!AddGap(timeline, u, base)) return false;
    ++chain.gap_count;
  }
  return chain.gap_count == 0 || chains.Append(chain);
}

bool FluidStep::AddGap(const Timeline& timeline, uint32_t use, uint32_t base) {
  const uint32_t first = timeline.use(use).op + 1, next = timeline.use(use).next;
  size += next - first;
  return gaps.Append({use, base, first + base, next + base});
}

// Whether it helps anybody that bytes are away in the window.
bool FluidStep::IsTight(const Use& use) const {
  const auto n = static_cast<uint32_t>(demand.size());
  for (uint32_t i = use.op + 1; i < use.next; ++i) {
    if (demand[i < n ? i : i - n] > 0) return true;
  }
  return false;
}

}  // namespace tidemark::core::planner
