#include "core/bounds/window_sweep.h"

#include <algorithm>
#include <bit>

namespace tidemark::core {

bool WindowSweep::Init(const Array<int64_t>& demand, const Array<IdleGap>& gaps) {
  n_ = static_cast<uint32_t>(demand.size());
  demand_ = &demand;
  gaps_ = &gaps;
  const size_t ends = 2 * size_t{n_} + 1;
  const size_t words = ends / 64 + 1;
  if (!first_.Resize(n_ + 1, 0) || !resident_.Resize(ends, 0) || !returns_.Resize(ends, 0) ||
      !occupied_.Resize(words, 0) || !summary_.Resize(words / 64 + 1, 0)) {
    return false;
  }
  for (const IdleGap& gap : gaps) ++first_[gap.from + 1];
  for (uint32_t i = 0; i < n_; ++i) first_[i + 1] += first_[i];
  return true;
}

void WindowSweep::Add(uint32_t to, int64_t bytes) {
  resident_[to] += bytes;
  occupied_[to / 64] |= uint64_t{1} << (to % 64);
  summary_[to / 4096] |= uint64_t{1} << (to / 64 % 64);
}

// Gaps that cover operation `start`, from this iteration or the one before.
void WindowSweep::AddOpenAt(uint32_t start) {
  for (const IdleGap& gap : *gaps_) {
    if (gap.from < start && start < gap.to) Add(gap.to - start, gap.bytes);
    if (gap.to > n_ && start + n_ > gap.from && start + n_ < gap.to) {
      Add(gap.to - n_ - start, gap.bytes);
    }
  }
}

int32_t WindowSweep::Last() const {
  for (auto s = static_cast<int32_t>(summary_.size()) - 1; s >= 0; --s) {
    if (summary_[s] == 0) continue;
    const int32_t word = s * 64 + 63 - std::countl_zero(summary_[s]);
    return word * 64 + 63 - std::countl_zero(occupied_[word]);
  }
  return -1;
}

void WindowSweep::Evict(int64_t need, int64_t* returns, int64_t* away) {
  while (need > 0) {
    const int32_t to = Last();
    if (to < 0) return;
    const int64_t taken = std::min(need, resident_[to]);
    returns[to] += taken;
    *away += taken;
    need -= taken;
    resident_[to] -= taken;
    if (resident_[to] != 0) return;
    occupied_[to / 64] &= ~(uint64_t{1} << (to % 64));
    if (occupied_[to / 64] == 0) summary_[to / 4096] &= ~(uint64_t{1} << (to / 64 % 64));
  }
}

void WindowSweep::Run(uint32_t start, int64_t* traffic) {
  std::fill(resident_.begin(), resident_.end(), 0);
  std::fill(returns_.begin(), returns_.end(), 0);
  std::fill(occupied_.begin(), occupied_.end(), 0);
  std::fill(summary_.begin(), summary_.end(), 0);
  AddOpenAt(start);
  int64_t away = 0;
  int64_t moved = 0;
  traffic[0] = 0;
  for (uint32_t k = 0; k < n_; ++k) {
    const uint32_t op = start + k < n_ ? start + k : start + k - n_;
    if (k > 0) {
      const uint32_t previous = op == 0 ? n_ - 1 : op - 1;
      for (uint32_t g = first_[previous]; g < first_[previous + 1]; ++g) {
        const IdleGap& gap = (*gaps_)[g];
        Add(k - 1 + gap.to - gap.from, gap.bytes);
      }
    }
    Evict((*demand_)[op] - away, returns_.begin(), &away);
    moved += returns_[k + 1];
    away -= returns_[k + 1];
    traffic[k + 1] = moved;
  }
}

bool Mirror(const Array<IdleGap>& gaps, uint32_t ops, Array<IdleGap>* mirrored) {
  if (!mirrored->CopyFrom(gaps)) return false;
  for (IdleGap& gap : *mirrored) {
    const uint32_t length = gap.to - gap.from;
    const uint32_t end = gap.to < ops ? gap.to : gap.to - ops;
    gap.from = ops - 1 - end;
    gap.to = gap.from + length;
  }
  std::sort(mirrored->begin(), mirrored->end(),
            [](const IdleGap& a, const IdleGap& b) { return a.from < b.from; });
  return true;
}

bool Mirror(const Array<int64_t>& demand, Array<int64_t>* mirrored) {
  if (!mirrored->CopyFrom(demand)) return false;
  std::reverse(mirrored->begin(), mirrored->end());
  return true;
}

}  // namespace tidemark::core
