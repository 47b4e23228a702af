// Implementation of core/held_places.h. Threads: as the header says.

#include "core/held_places.h"

#include <algorithm>

namespace tidemark::core {

bool HeldPlaces::Start(const Array<Recurring>* plan) {
  plan_ = plan;
  stage_ = Stage::kNone;
  next_ = 0;
  wanted_.Clear(), tenures_.Clear(), taken_.Clear(), fences_.Clear(), before_.Clear();
  if (plan->empty() || plan->size() > Packing::kMost) return false;
  const size_t places = plan->size() + 1;
  if (!wanted_.Resize(places) || !tenures_.Resize(places) || !taken_.Resize(places)) return false;
  if (!fences_.Resize(places) || !before_.Reserve(4 * plan->size())) return false;
  freed_ = expected_ = 0;
  latest_ = fence_ = 0;
  if (!SortBounds() || !MakeCoarse()) return false;
  const size_t words = bounds_.size() / 64 + 1;
  live_.Clear(), changes_.Clear(), at_.Clear(), tenant_.Clear();
  if (!live_.Resize(words) || !changes_.Resize(words)) return false;
  if (!at_.Resize(bounds_.size()) || !tenant_.Resize(bounds_.size())) return false;
  changes_[0] = 1;
  tenant_[0] = kNobody;
  stage_ = Stage::kBounds;
  return true;
}

bool HeldPlaces::SortBounds() {
  bounds_.Clear();
  if (!bounds_.Append(0)) return false;
  for (const Recurring& request : *plan_) {
    if (!IsPacked(request)) continue;
    if (!bounds_.Append(request.place)) return false;
    if (!bounds_.Append(request.place + request.units)) return false;
  }
  std::sort(bounds_.begin(), bounds_.end());
  const uint32_t* end = std::unique(bounds_.begin(), bounds_.end());
  return bounds_.Resize(static_cast<size_t>(end - bounds_.begin()));
}

bool HeldPlaces::MakeCoarse() {
  coarse_.Clear();
  const uint32_t top = bounds_[bounds_.size() - 1];
  coarse_shift_ = kFinest;
  while (top >> coarse_shift_ > 2 * bounds_.size()) ++coarse_shift_;
  uint32_t bound = 0;
  for (uint64_t unit = 0; unit <= top; unit += uint64_t{1} << coarse_shift_) {
    while (bound + 1 < bounds_.size() && bounds_[bound + 1] <= unit) ++bound;
    if (!coarse_.Append(bound)) return false;
  }
  return true;
}

uint32_t HeldPlaces::BoundAt(uint64_t unit) const {
  const uint64_t cell = unit >> coarse_shift_;
  const auto last = static_cast<uint32_t>(bounds_.size() - 1);
  if (cell >= coarse_.size()) return last;
  uint32_t low = coarse_[cell];
  uint32_t high = cell + 1 < coarse_.size() ? coarse_[cell + 1] : last;
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (bounds_[middle] <= unit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// The highest bit at or below `bound`; there is one.
uint32_t HeldPlaces::LastSet(const Array<uint64_t>& bits, uint32_t bound) {
  uint32_t word = bound / 64;
  uint64_t set = bits[word] & (~uint64_t{0} >> (63 - bound % 64));
  while (set == 0) set = bits[--word];
  return word * 64 + 63 - static_cast<uint32_t>(std::countl_zero(set));
}

// The lowest bit at or above `bound` and below `end`, else `end`.
uint32_t HeldPlaces::NextSet(const Array<uint64_t>& bits, uint32_t bound, uint32_t end) {
  if (bound >= end) return end;
  uint32_t word = bound / 64;
  uint64_t set = bits[word] & (~uint64_t{0} << bound % 64);
  while (set == 0) {
    if (++word * 64 >= end) return end;
    set = bits[word];
  }
  return std::min(end, word * 64 + static_cast<uint32_t>(std::countr_zero(set)));
}

bool HeldPlaces::Work(uint32_t requests) {
  for (; requests > 0 && stage_ != Stage::kReady; --requests) {
    if (stage_ == Stage::kBounds) {
      const Recurring& request = (*plan_)[next_];
      if (IsPacked(request)) {
        wanted_[next_] = {request.units, request.stream, request.place, 0};
        tenures_[next_].low = static_cast<uint16_t>(BoundAt(request.place));
      }
    } else if (!Settle(next_, stage_ == Stage::kSecondRound) || !FillUp()) {
      stage_ = Stage::kNone;
      return false;
    }
    if (++next_ < plan_->size()) continue;
    next_ = 0;
    stage_ = stage_ == Stage::kBounds       ? Stage::kFirstRound
             : stage_ == Stage::kFirstRound ? Stage::kSecondRound
                                            : Stage::kReady;
  }
  if (stage_ == Stage::kReady) wanted_[plan_->size()].first = static_cast<uint32_t>(before_.size());
  return true;
}

bool HeldPlaces::FillUp() {
  while (before_.size() % kTogether != 0) {
    if (!before_.Append(static_cast<uint16_t>(plan_->size()))) return false;
  }
  return true;
}

// `request` becomes the tenant of its place; those before it are noted.
bool HeldPlaces::Settle(uint32_t request, bool note) {
  Wanted& wanted = wanted_[request];
  if (note) wanted.first = static_cast<uint32_t>(before_.size());
  if (wanted.place == Recurring::kNowhere) return true;
  const uint32_t low = tenures_[request].low;
  const uint32_t high = BoundAt(uint64_t{wanted.place} + wanted.units);
  uint16_t tenant = tenant_[LastSet(changes_, low)];
  if (!Note(tenant, note)) return false;
  for (uint32_t b = low + 1; (b = NextSet(changes_, b, high)) < high; ++b) {
    tenant = tenant_[b];
    if (!Note(tenant, note)) return false;
    changes_[b / 64] &= ~(uint64_t{1} << b % 64);
  }
  if ((changes_[high / 64] >> high % 64 & 1) == 0) {
    changes_[high / 64] |= uint64_t{1} << high % 64;
    tenant_[high] = tenant;
  }
  changes_[low / 64] |= uint64_t{1} << low % 64;
  tenant_[low] = static_cast<uint16_t>(request);
  return true;
}

bool HeldPlaces::Unused(uint64_t first, uint64_t end) const {
  const auto last = static_cast<uint32_t>(bounds_.size() - 1);
  if (first >= bounds_[last]) return true;
  uint32_t bound = LastSet(changes_, BoundAt(first));
  for (; bound <= last && bounds_[bound] < end; bound = NextSet(changes_, bound + 1, last + 1)) {
    if (tenant_[bound] != kNobody) return false;
  }
  return true;
}

bool HeldPlaces::NextUsed(uint32_t* bound, uint64_t* first, uint64_t* end) const {
  const auto last = static_cast<uint32_t>(bounds_.size() - 1);
  uint32_t b = NextSet(changes_, *bound, last);
  while (b < last && tenant_[b] == kNobody) b = NextSet(changes_, b + 1, last);
  if (b >= last) return false;
  *first = bounds_[b];
  while (b < last && tenant_[b] != kNobody) b = NextSet(changes_, b + 1, last);
  *end = bounds_[b];
  *bound = b;
  return true;
}

void HeldPlaces::Clear() {
  for (Tenure& tenure : tenures_) tenure.block = nullptr;
  for (uint8_t& taken : taken_) taken = 0;
  for (FenceId& fence : fences_) fence = 0;
  for (uint64_t& word : live_) word = 0;
  fence_ = latest_ = 0;
}

FenceId HeldPlaces::FenceOf(uint32_t request) const {
  FenceId fence = fence_;
  for (uint32_t i = wanted_[request].first; i < wanted_[request + 1].first; ++i) {
    fence = std::max(fence, fences_[before_[i]]);
  }
  return fence;
}

void HeldPlaces::JoinFences(uint32_t request, FenceId passed, FenceId* fence,
                            StreamId* stream) const {
  for (uint32_t i = wanted_[request].first; i < wanted_[request + 1].first; ++i) {
    const FenceId before = fences_[before_[i]];
    if (before > passed) Join(before, tenures_[before_[i]].stream, fence, stream);
  }
  if (fence_ > passed) Join(fence_, kAnyStream, fence, stream);
}

Bytes HeldPlaces::Waiting(FenceId passed) const {
  Bytes units = 0;
  for (size_t i = 0; i < plan_->size(); ++i) {
    if (taken_[i] == 0 && fences_[i] > passed) units += (*plan_)[i].units;
  }
  return units * kBlockBytes;
}

Block* HeldPlaces::Find(Bytes offset) const {
  const uint32_t bound = BoundAt(offset / kBlockBytes);
  uint32_t word = bound / 64;
  uint64_t set = live_[word] & (~uint64_t{0} >> (63 - bound % 64));
  while (set == 0) {
    if (word == 0) return nullptr;
    set = live_[--word];
  }
  const uint32_t at = word * 64 + 63 - static_cast<uint32_t>(std::countl_zero(set));
  Block* block = tenures_[at_[at]].block;
  return offset < OffsetOf(at_[at]) + block->size ? block : nullptr;
}

Block* HeldPlaces::Next(uint32_t* bound) const {
  const auto end = static_cast<uint32_t>(bounds_.size());
  *bound = NextSet(live_, *bound, end);
  if (*bound >= end) return nullptr;
  return tenures_[at_[(*bound)++]].block;
}

}  // namespace tidemark::core
