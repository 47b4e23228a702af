#include "core/planner/demand_draft.h"

#include <algorithm>

#include "core/planner/range_max.h"

namespace tidemark::core::planner {
namespace {

class ByDemand {
 public:
  ByDemand(const Timeline& timeline, const Machine& machine, Draft* draft)
      : timeline_(timeline),
        machine_(machine),
        draft_(draft),
        n_(timeline.ops()),
        budget_(static_cast<int64_t>(std::min(machine.device_budget, Bytes{INT64_MAX}))) {}

  DraftResult Run() {
    draft_->aways.Clear();
    const DraftResult covered = CoverDemand(timeline_, machine_, draft_);
    if (covered != DraftResult::kDone) return covered;
    if (!Sum() || !ListReturns()) return DraftResult::kNoMemory;
    LeaveEarly();
    ReturnLate();
    return DraftResult::kDone;
  }

 private:
  // Copies out queue up in the order of last uses.
  void LeaveEarly() {
    for (Away& a : draft_->aways) {
      a.issue = static_cast<int32_t>(timeline_.use(a.use).op + 1);
      a.order = timeline_.use(a.use).op;
    }
  }

  bool Sum() {
    if (!taken_.Start(n_) || !until_.Resize(2 * size_t{n_} + 1, 0)) return false;
    for (uint32_t i = 0; i < 2 * n_; ++i) {
      until_[i + 1] = until_[i] + static_cast<double>(timeline_.step().ops[i % n_].duration);
    }
    Array<Bytes> away;
    if (!SumAways(n_, draft_->aways, &away)) return false;
    for (OpIndex i = 0; i < n_; ++i) {
      taken_.Set(i, static_cast<int64_t>(timeline_.live(i) - away[i]));
    }
    taken_.Settle();
    return true;
  }

  // Soonest next use last, over two iterations.
  bool ListReturns() {
    if (!returns_.Resize(draft_->aways.size())) return false;
    for (uint32_t k = 0; k < returns_.size(); ++k) returns_[k] = k;
    const Array<Away>& aways = draft_->aways;
    std::sort(returns_.begin(), returns_.end(), [&](uint32_t a, uint32_t b) {
      return aways[a].reserve != aways[b].reserve ? aways[a].reserve > aways[b].reserve : a < b;
    });
    return true;
  }

  // Backwards from the uses, one after the other; the room decides where it is scarce.
  void ReturnLate() {
    double start = until_[2 * size_t{n_}];
    for (const uint32_t k : returns_) {
      Away& a = draft_->aways[k];
      start = std::min(start, until_[a.reserve]) -
              static_cast<double>(a.bytes) * 1e9 / machine_.in_rate_duplex;
      const double* in_time = std::upper_bound(until_.begin(), until_.end(), start);
      const auto soonest = static_cast<uint32_t>(in_time - until_.begin());
      const uint32_t last = std::max({a.release + 1, soonest == 0 ? 0 : soonest - 1, RoomFrom(a)});
      if (last >= a.reserve) continue;
      Take(last, a.reserve, static_cast<int64_t>(a.bytes));
      a.reserve = last;
    }
  }

  // The first operation from which on the part could be there until it returns.
  uint32_t RoomFrom(const Away& a) const {
    const int64_t limit = budget_ - static_cast<int64_t>(a.bytes);
    if (a.reserve > n_) {
      const RangeMax::Slot full = taken_.LastAbove(a.reserve - n_, limit);
      if (full.at != kNone) return full.at + n_ + 1;
    }
    const RangeMax::Slot full = taken_.LastAbove(std::min(a.reserve, n_), limit);
    return full.at == kNone ? 0 : full.at + 1;
  }

  // Operations from `from` to before `to`, counted like those of a part.
  void Take(uint32_t from, uint32_t to, int64_t bytes) {
    taken_.Add(from, std::min(to, n_), bytes);
    if (to > n_) taken_.Add(std::max(from, n_) - n_, to - n_, bytes);
  }

  const Timeline& timeline_;
  const Machine& machine_;
  Draft* draft_;
  const uint32_t n_;
  const int64_t budget_;
  RangeMax taken_;       // device bytes during each operation
  Array<double> until_;  // time from the iteration's start to each operation, without waits
  Array<uint32_t> returns_;
};

}  // namespace

DraftResult DraftByDemand(const Timeline& timeline, const Machine& machine, Draft* draft) {
  return ByDemand(timeline, machine, draft).Run();
}

}  // namespace tidemark::core::planner
