#include "core/planner/safepoints.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

// Boundaries at which one event of a move may happen, counted on through the iteration's end.
struct Span {
  uint32_t first = 0;
  uint32_t last = 0;
  MoveIndex move = 0;
  bool is_release = false;
};

class Sharing {
 public:
  Sharing(const Timeline& timeline, Plan* plan)
      : timeline_(timeline), plan_(plan), n_(timeline.ops()) {}

  bool Run(const Array<OpIndex>& out_done_at, const Array<OpIndex>& in_done_at) {
    if (!chosen_.Resize(n_, false) || !spans_.Reserve(2 * plan_->moves.size())) return false;
    for (MoveIndex m = 0; m < plan_->moves.size(); ++m) {
      if (!AddSpans(m, out_done_at[m], in_done_at[m])) return false;
    }
    std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) {
      if (a.last != b.last) return a.last < b.last;
      if (a.first != b.first) return a.first > b.first;
      return a.move != b.move ? a.move < b.move : a.is_release && !b.is_release;
    });
    if (!last_before_.Resize(2 * size_t{n_} + 1, kNone)) return false;
    for (const Span& span : spans_) {  // the ones without a choice
      if (span.first == span.last) chosen_[span.last % n_] = true;
    }
    Count();
    for (const Span& span : spans_) Place(span);
    return true;
  }

 private:
  // A boundary, counted like the window that starts after `op`.
  uint32_t After(uint32_t op, OpIndex boundary) const {
    return boundary > op ? boundary : boundary + n_;
  }

  bool AddSpans(MoveIndex m, OpIndex out_done, OpIndex in_done) {
    const Move& move = plan_->moves[m];
    const uint32_t window = timeline_.WindowOf(move.buffer, move.release);
    if (window == kNone) return true;
    const Use& use = timeline_.use(window);
    const uint32_t release = After(use.op, move.release);
    const uint32_t reserve = After(use.op, move.reserve);
    const uint32_t ready = After(use.op, move.ready);
    Span leaves{use.op + 1, release, m, true};
    if (!move.clean) {
      const uint32_t early = (move.release + n_ - out_done) % n_;
      const uint32_t lead = (move.release + n_ - move.after - 1) % n_;
      leaves.first = early > lead ? release : std::max(leaves.first, release - early);
    }
    const uint32_t early = (move.ready + n_ - in_done) % n_;
    const Span returns{early > ready - reserve ? ready : ready - early, use.next, m, false};
    return spans_.Append(leaves) && spans_.Append(returns);
  }

  // last_before_[i]: the last chosen boundary up to i, over two iterations.
  void Count() {
    uint32_t last = kNone;
    for (uint32_t i = 0; i < 2 * n_; ++i) {
      if (chosen_[i % n_]) last = i;
      last_before_[i] = last;
    }
  }

  void Place(const Span& span) {
    uint32_t at = last_before_[span.last];
    if (newest_ != kNone && newest_ <= span.last && (at == kNone || newest_ > at)) at = newest_;
    if (at == kNone || at < span.first) {
      at = span.last;
      chosen_[at % n_] = true;
      newest_ = at;
    }
    Move& move = plan_->moves[span.move];
    (span.is_release ? move.release : move.ready) = at % n_;
  }

  const Timeline& timeline_;
  Plan* plan_;
  const uint32_t n_;
  Array<Span> spans_;
  Array<bool> chosen_;
  Array<uint32_t> last_before_;  // of the boundaries that had to be
  uint32_t newest_ = kNone;      // of those added since
};

}  // namespace

bool ShareSafepoints(const Timeline& timeline, const Array<OpIndex>& out_done_at,
                     const Array<OpIndex>& in_done_at, Plan* plan) {
  return Sharing(timeline, plan).Run(out_done_at, in_done_at);
}

}  // namespace tidemark::core::planner
