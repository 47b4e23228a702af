#include "core/bounds/coarse_step.h"

#include <algorithm>

namespace tidemark::core {

bool CoarseStep::Build(const IdleGaps& step, uint32_t most_moments, Granularity granularity) {
  op_count_ = static_cast<uint32_t>(step.demand.size());
  if (!ChooseOps(step, std::min(most_moments, op_count_))) return false;
  if (!first_after_.Resize(op_count_ + 1) || !demand.Resize(moments) ||
      !duration.Resize(2 * size_t{moments}, 0)) {
    return false;
  }
  uint32_t k = 0;
  for (uint32_t op = 0; op < op_count_; ++op) {
    const bool is_moment = k < moments && ops[k] == op;
    if (is_moment) demand[k++] = static_cast<double>(step.demand[op]);
    first_after_[op] = k;
    const bool own_slot = is_moment && granularity == Granularity::kBoundary;
    const uint32_t slot = own_slot ? 2 * k - 1 : 2 * (k % moments);
    duration[slot] += static_cast<double>(step.duration[op]);
  }
  for (const CopyChain& chain : step.chains) {
    if (!AddChain(step, chain)) return false;
  }
  return Merge();
}

// One operation in each stretch: where most must be away. Stretches are equal in the mean of their
// shares of operations, of time, and of the changes of demand.
bool CoarseStep::ChooseOps(const IdleGaps& step, uint32_t most_moments) {
  Array<double> reached;
  if (!reached.Resize(op_count_) || !ops.Reserve(most_moments)) return false;
  double time = 0;
  double change = 0;
  for (uint32_t op = 0; op < op_count_; ++op) {
    const int64_t before = step.demand[op == 0 ? op_count_ - 1 : op - 1];
    time += static_cast<double>(step.duration[op]);
    change += static_cast<double>(std::abs(step.demand[op] - before));
    reached[op] = change;
  }
  double so_far = 0;
  uint32_t stretch = 0;
  moments = 0;
  for (uint32_t op = 0; op < op_count_; ++op) {
    so_far += static_cast<double>(step.duration[op]);
    const double shares = (op + 1.0) / op_count_ + (time > 0 ? so_far / time : 1) +
                          (change > 0 ? reached[op] / change : 1);
    const auto at = std::min(static_cast<uint32_t>(shares / 3 * most_moments), most_moments - 1);
    if (moments == 0 || at > stretch) {
      stretch = at;
      if (!ops.Append(op)) return false;
      ++moments;
    } else if (step.demand[op] > step.demand[ops[moments - 1]]) {
      ops[moments - 1] = op;
    }
  }
  return true;
}

// The first moment behind an operation, counted through the iterations; FirstFrom: at or behind it.
uint32_t CoarseStep::FirstAfter(uint32_t op) const {
  const uint32_t iteration = op / op_count_;
  return iteration * moments + first_after_[op - iteration * op_count_];
}

uint32_t CoarseStep::FirstFrom(uint32_t op) const { return op == 0 ? 0 : FirstAfter(op - 1); }

bool CoarseStep::AddChain(const IdleGaps& step, const CopyChain& chain) {
  CoarseChain coarse;
  coarse.first_gap = static_cast<uint32_t>(gaps.size());
  coarse.bytes = static_cast<double>(chain.bytes);
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const IdleGap& gap = step.chain_gaps[chain.first_gap + g];
    const uint32_t first = FirstAfter(gap.from);
    const uint32_t behind = FirstFrom(gap.to);
    if (first >= behind) continue;
    bool short_of_memory = false;
    for (uint32_t k = first; k < behind; ++k) {
      short_of_memory = short_of_memory || demand[k % moments] > 0;
    }
    if (!short_of_memory) continue;
    if (!gaps.Append({first, behind - 1})) return false;
    ++coarse.gap_count;
  }
  if (coarse.gap_count == 0) return true;
  const bool never_dirty = chain.from == kNeverDirty;
  coarse.from = never_dirty ? kNeverDirty : FirstAfter(chain.from);
  const uint32_t start = never_dirty ? gaps[coarse.first_gap].first : coarse.from;
  const uint32_t back = start / moments * moments;
  for (uint32_t g = coarse.first_gap; g < gaps.size(); ++g) {
    gaps[g].first -= back;
    gaps[g].last -= back;
  }
  if (!never_dirty) coarse.from -= back;
  return chains.Append(coarse);
}

bool CoarseStep::Precedes(const CoarseChain& a, const CoarseChain& b) const {
  if (a.from != b.from) return a.from < b.from;
  if (a.gap_count != b.gap_count) return a.gap_count < b.gap_count;
  for (uint32_t g = 0; g < a.gap_count; ++g) {
    const CoarseGap& of_a = gaps[a.first_gap + g];
    const CoarseGap& of_b = gaps[b.first_gap + g];
    if (of_a.first != of_b.first) return of_a.first < of_b.first;
    if (of_a.last != of_b.last) return of_a.last < of_b.last;
  }
  return false;
}

bool CoarseStep::Merge() {
  std::sort(chains.begin(), chains.end(),
            [&](const CoarseChain& a, const CoarseChain& b) { return Precedes(a, b); });
  size_t kept = 0;
  for (const CoarseChain& chain : chains) {
    if (kept > 0 && !Precedes(chains[kept - 1], chain))
      chains[kept - 1].bytes += chain.bytes;
    else
      chains[kept++] = chain;
  }
  return chains.Resize(kept);
}

size_t CoarseStep::Size() const {
  size_t size = 0;
  for (const CoarseChain& chain : chains) {
    for (uint32_t g = 0; g < chain.gap_count; ++g) {
      const CoarseGap& gap = gaps[chain.first_gap + g];
      size += gap.last - gap.first + 1;
    }
  }
  return size;
}

}  // namespace tidemark::core
