#include "core/planner/demand_draft.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

class ByDemand {
 public:
  ByDemand(const Timeline& timeline, const Machine& machine, Draft* draft)
      : timeline_(timeline), machine_(machine), draft_(draft), n_(timeline.ops()) {}

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
    if (!free_.Resize(n_, 0) || !until_.Resize(2 * size_t{n_} + 1, 0)) return false;
    for (uint32_t i = 0; i < 2 * n_; ++i) {
      until_[i + 1] = until_[i] + static_cast<double>(timeline_.step().ops[i % n_].duration);
    }
    for (OpIndex i = 0; i < n_; ++i) free_[i] = machine_.device_budget - timeline_.live(i);
    for (const Away& a : draft_->aways) {
      for (uint32_t i = a.release; i < a.reserve; ++i) free_[i % n_] += a.bytes;
    }
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
      while (a.reserve > a.release + 1 && until_[a.reserve] > start &&
             free_[(a.reserve - 1) % n_] >= a.bytes) {
        free_[--a.reserve % n_] -= a.bytes;
      }
    }
  }

  const Timeline& timeline_;
  const Machine& machine_;
  Draft* draft_;
  const uint32_t n_;
  Array<Bytes> free_;    // room on the device during each operation
  Array<double> until_;  // time from the iteration's start to each operation, without waits
  Array<uint32_t> returns_;
};

}  // namespace

DraftResult DraftByDemand(const Timeline& timeline, const Machine& machine, Draft* draft) {
  return ByDemand(timeline, machine, draft).Run();
}

}  // namespace tidemark::core::planner
