#include "core/planner/prices/fluid_step.h"

#include <algorithm>

namespace tidemark::core::planner {

bool FluidStep::Build(const Timeline& timeline, const Machine& machine, uint32_t stretches,
                      Bytes spare) {
  ops_ = timeline.ops();
  starts.Clear();
  demand.Clear();
  duration.Clear();
  chains.Clear();
  gaps.Clear();
  classes.Clear();
  size = gaps_of_classes = 0;
  if (!ChooseStarts(timeline, std::min(stretches, ops_)) || !demand.Resize(starts.size(), 0) ||
      !duration.Resize(starts.size(), 0)) {
    return false;
  }
  for (OpIndex i = 0; i < ops_; ++i) {
    const Bytes live = timeline.live(i);
    const Bytes needed = live - std::min(live, machine.device_budget);
    const Bytes most = std::max(needed, live - timeline.floor(i));
    const auto asked = static_cast<double>(needed == 0 ? 0 : std::min(needed + spare, most));
    demand[stretch_of_[i]] = std::max(demand[stretch_of_[i]], asked);
    duration[stretch_of_[i]] += static_cast<double>(timeline.step().ops[i].duration);
  }
  for (BufferIndex b = 0; b < timeline.buffers(); ++b) {
    if (timeline.CanMove(b) && !AddChains(timeline, b)) return false;
  }
  return Classify();
}

// Equal in the mean of their shares of operations, of time and of bytes used.
bool FluidStep::ChooseStarts(const Timeline& timeline, uint32_t stretches) {
  Array<double> used;
  if (!used.Resize(ops_, 0) || !stretch_of_.Resize(ops_) || !starts.Reserve(stretches))
    return false;
  double all = 0, so_far = 0, time = 0;
  for (OpIndex i = 0; i < ops_; ++i) {
    for (uint32_t k = timeline.first_user(i); k < timeline.first_user(i + 1); ++k) {
      const BufferIndex b = timeline.user(k);
      if (timeline.CanMove(b)) used[i] += static_cast<double>(timeline.buffer(b).bytes);
    }
    all += used[i];
  }
  uint32_t last = 0;
  for (OpIndex i = 0; i < ops_; ++i) {
    const double ideal = static_cast<double>(timeline.ideal());
    const double share =
        (i + (ideal > 0 ? time / ideal * ops_ : i) + (all > 0 ? so_far / all * ops_ : i)) /
        (3.0 * ops_);
    const auto at = static_cast<uint32_t>(share * stretches);
    const bool starts_here = stretches == ops_ || i == 0 || at > last;
    if (starts_here && !starts.Append(i)) return false;
    last = std::max(last, at);
    stretch_of_[i] = static_cast<uint32_t>(starts.size() - 1);
    so_far += used[i];
    time += static_cast<double>(timeline.step().ops[i].duration);
  }
  return true;
}

uint32_t FluidStep::LastUntil(uint32_t op) const {
  return stretch_of_[op % ops_] + op / ops_ * static_cast<uint32_t>(starts.size());
}

uint32_t FluidStep::FirstFrom(uint32_t op) const {
  const uint32_t k = LastUntil(op);
  return OpAt(k) == op ? k : k + 1;
}

// Below 0, 0 or above: by times.
int FluidStep::Compare(const FluidChain& a, const FluidChain& b) const {
  const auto compare = [](uint32_t x, uint32_t y) { return x < y ? -1 : x > y ? 1 : 0; };
  int order = compare(a.from, b.from);
  if (order == 0) order = compare(a.is_clean ? 1 : 0, b.is_clean ? 1 : 0);
  if (order == 0) order = compare(a.gap_count, b.gap_count);
  for (uint32_t g = 0; g < a.gap_count && order == 0; ++g) {
    const FluidGap &x = gaps[a.first_gap + g], &y = gaps[b.first_gap + g];
    order = compare(x.first, y.first);
    if (order == 0) order = compare(x.next, y.next);
  }
  return order;
}

bool FluidStep::Classify() {
  Array<uint32_t> sorted;
  if (!sorted.Resize(chains.size())) return false;
  for (uint32_t c = 0; c < chains.size(); ++c) sorted[c] = c;
  std::sort(sorted.begin(), sorted.end(), [this](uint32_t a, uint32_t b) {
    const int order = Compare(chains[a], chains[b]);
    return order != 0 ? order < 0 : a < b;
  });
  for (const uint32_t c : sorted) {
    FluidChain& chain = chains[c];
    if (classes.empty() || Compare(chains[classes[classes.size() - 1].chain], chain) != 0) {
      FluidClass alike;
      alike.chain = c;
      for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
        alike.size += gaps[g].next - gaps[g].first;
      }
      if (!classes.Append(alike)) return false;
      gaps_of_classes += chain.gap_count;
      size += alike.size;
    }
    FluidClass& alike = classes[classes.size() - 1];
    chain.first_alike = alike.chain;
    chain.alike = static_cast<uint32_t>(classes.size() - 1);
    chain.place = alike.count++;
    alike.bytes += chain.bytes;
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
  for (uint32_t k = 0; k < end - first; ++k) {
    const uint32_t u = start + k < end ? start + k : start + k - (end - first);
    const uint32_t base = u < start ? ops_ : 0;
    const Use& use = timeline.use(u);
    if (use.write || k == 0) {
      DropEmptyChain();
      FluidChain chain;
      chain.buffer = b;
      chain.bytes = static_cast<double>(timeline.buffer(b).bytes);
      chain.write = u;
      chain.from = FirstFrom(use.op + base + 1);
      chain.is_clean = is_clean;
      chain.first_gap = static_cast<uint32_t>(gaps.size());
      if (!chains.Append(chain)) return false;
    }
    if (timeline.IsOpen(use) && !AddGap(timeline, u, base)) return false;
  }
  DropEmptyChain();
  return true;
}

void FluidStep::DropEmptyChain() {
  if (chains.empty() || chains[chains.size() - 1].gap_count != 0) return;
  (void)chains.Resize(chains.size() - 1);  // shrinks
}

bool FluidStep::AddGap(const Timeline& timeline, uint32_t use, uint32_t base) {
  const uint32_t first = FirstFrom(timeline.use(use).op + 1 + base);
  const FluidGap gap{use, base, first, LastUntil(timeline.use(use).next + base)};
  if (gap.first >= gap.next || !IsTight(gap)) return true;
  ++chains[chains.size() - 1].gap_count;
  return gaps.Append(gap);
}

bool FluidStep::IsTight(const FluidGap& gap) const {
  for (uint32_t k = gap.first; k < gap.next; ++k) {
    if (demand[k % demand.size()] > 0) return true;
  }
  return false;
}

}  // namespace tidemark::core::planner
