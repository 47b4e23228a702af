#include "core/planner/prices/mend_draft.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostOps = 32;  // by which an absence gets longer for one operation's sake

class Mending {
 public:
  Mending(const Timeline& timeline, const Machine& machine, Draft* draft)
      : timeline_(timeline), machine_(machine), draft_(draft), n_(timeline.ops()) {}

  bool Run() {
    const auto parts = static_cast<uint32_t>(draft_->aways.size());
    if (!SumAways(n_, draft_->aways, &away_) || !by_reserve_.Resize(n_, kNone) ||
        !by_release_.Resize(n_, kNone) || !next_reserve_.Resize(parts) ||
        !next_release_.Resize(parts)) {
      return false;
    }
    for (uint32_t k = 0; k < parts; ++k) {
      const Away& a = draft_->aways[k];
      Link(k, a.reserve, &by_reserve_, &next_reserve_);
      Link(k, a.release, &by_release_, &next_release_);
    }
    for (OpIndex i = 0; i < n_; ++i) {
      const uint32_t most = std::min(kMostOps, n_ - 1);
      for (uint32_t d = 0; d < most && IsShort(i); ++d) {
        Take(i, d, &by_reserve_, &next_reserve_, /*returns=*/true);
        Take(i, d, &by_release_, &next_release_, /*returns=*/false);
      }
    }
    return true;
  }

 private:
  bool IsShort(OpIndex i) const { return timeline_.live(i) > machine_.device_budget + away_[i]; }

  void Link(uint32_t k, uint32_t at, Array<uint32_t>* heads, Array<uint32_t>* next) const {
    (*next)[k] = (*heads)[at % n_];
    (*heads)[at % n_] = k;
  }

  // Parts that return d operations before i, or leave d after it, are away during it, too.
  void Take(OpIndex i, uint32_t d, Array<uint32_t>* heads, Array<uint32_t>* next, bool returns) {
    const uint32_t at = returns ? (i + n_ - d) % n_ : (i + 1 + d) % n_;
    uint32_t* link = &(*heads)[at];
    while (*link != kNone && IsShort(i)) {
      const uint32_t k = *link;
      Away& a = draft_->aways[k];
      const Use& use = timeline_.use(a.use);
      const bool can = returns ? a.reserve + d + 1 <= use.next : a.release > use.op + d + 1;
      if (!can) {
        link = &(*next)[k];
        continue;
      }
      *link = (*next)[k];
      for (uint32_t step = 0; step <= d; ++step) {
        away_[(returns ? a.reserve++ : --a.release) % n_] += a.bytes;
      }
      a.ready = std::max(a.ready, a.reserve);
      // To the front of the queues: behind the copies made meanwhile it would wait for all of them.
      if (a.fetch < a.reserve) {
        a.fetch = a.reserve;
        a.fetch_order = 0;
      }
      if (a.issue >= static_cast<int32_t>(a.release)) {
        a.issue = static_cast<int32_t>(a.release);
        a.order = 0;
      }
      Link(k, returns ? a.reserve : a.release, heads, next);
    }
  }

  const Timeline& timeline_;
  const Machine& machine_;
  Draft* draft_;
  const uint32_t n_;
  Array<Bytes> away_;
  // Parts by the boundary at which they return or leave, as lists.
  Array<uint32_t> by_reserve_, by_release_, next_reserve_, next_release_;
};

}  // namespace

bool MendDraft(const Timeline& timeline, const Machine& machine, Draft* draft) {
  return Mending(timeline, machine, draft).Run();
}

}  // namespace tidemark::core::planner
