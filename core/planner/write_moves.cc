#include <algorithm>

#include "core/planner/draft.h"
#include "core/planner/evaluate.h"
#include "core/planner/fit_host.h"

namespace tidemark::core::planner {
namespace {

struct Style {
  bool keeps_copies;
  bool copies_late;  // copies out start when they are due, not as soon as the content is there
};

void SortByPart(Array<Away>* aways) {
  std::sort(aways->begin(), aways->end(), [](const Away& a, const Away& b) {
    if (a.buffer != b.buffer) return a.buffer < b.buffer;
    if (a.offset != b.offset) return a.offset < b.offset;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.use != b.use ? a.use < b.use : a.release < b.release;
  });
}

// Neighbouring parts that leave and return together all through the step become one.
void MergeNeighbours(Array<Away>* aways) {
  size_t kept = 0, last = kNone;  // last: first of the part before, among the kept
  for (size_t first = 0, end = 0; first < aways->size(); first = end) {
    end = PartEnd(*aways, first);
    bool same = last != kNone && kept - last == end - first &&
                (*aways)[last].buffer == (*aways)[first].buffer &&
                (*aways)[last].offset + (*aways)[last].bytes == (*aways)[first].offset;
    for (size_t k = 0; same && k < end - first; ++k) {
      const Away &a = (*aways)[last + k], &b = (*aways)[first + k];
      same = a.use == b.use && a.release == b.release && a.reserve == b.reserve &&
             a.ready == b.ready && a.issue == b.issue && a.copies_late == b.copies_late &&
             a.copies_again == b.copies_again;
    }
    if (same) {
      for (size_t k = 0; k < end - first; ++k)
        (*aways)[last + k].bytes += (*aways)[first + k].bytes;
      continue;
    }
    last = kept;
    for (size_t k = first; k < end; ++k) (*aways)[kept++] = (*aways)[k];
  }
  (void)aways->Resize(kept);  // shrinks
}

class Writer {
 public:
  Writer(const Timeline& timeline, const Array<Away>& aways, Plan* plan)
      : timeline_(timeline), aways_(aways), plan_(plan), n_(timeline.ops()) {}

  bool Run(Style style) {
    plan_->moves.Clear();
    keys_.Clear();
    if (!plan_->moves.Reserve(aways_.size()) || !keys_.Resize(aways_.size())) return false;
    for (size_t first = 0, end = 0; first < aways_.size(); first = end) {
      end = PartEnd(aways_, first);
      for (size_t k = first; k < end; ++k) {
        if (!plan_->moves.Append(WriteMove(first, end, k, style))) return false;
      }
      for (size_t k = first; k < end; ++k) {
        plan_->moves[k].keeps_copy = plan_->moves[k + 1 == end ? first : k + 1].clean;
      }
    }
    return WriteQueues();
  }

 private:
  struct Key {
    int64_t out_slot;
    uint32_t out_order;
  };

  // When the content that leaves was written, counted like the window; before the part last
  // returned at the latest.
  bool IsClean(size_t first, size_t end, size_t k) const {
    const Away& a = aways_[k];
    const Use& use = timeline_.use(a.use);
    if (k == first && !timeline_.buffer(a.buffer).persistent) return false;
    const int64_t shift = k == first ? n_ : 0;
    const Away& before = aways_[k == first ? end - 1 : k - 1];
    if (use.since_write == kNone) return true;
    const int64_t returned = int64_t{timeline_.use(before.use).next} - shift;
    return int64_t{use.op} - use.since_write < returned;
  }

  // The last return of any part of the buffer before window k, counted like the window.
  int64_t LastReturn(size_t k) const {
    const Away& a = aways_[k];
    int64_t last = INT64_MIN;
    const auto note = [&](const Away& other) {
      if (other.buffer != a.buffer) return false;
      const int64_t next = timeline_.use(other.use).next;
      const int64_t op = timeline_.use(a.use).op;
      const int64_t returned = next <= op ? next : next - n_;
      if (returned <= op) last = std::max(last, returned);
      return true;
    };
    for (size_t i = k; i < aways_.size() && note(aways_[i]);) ++i;
    for (size_t i = k; i-- > 0 && note(aways_[i]);) {
    }
    return last;
  }

  Move WriteMove(size_t first, size_t end, size_t k, Style style) {
    const Away& a = aways_[k];
    const Use& use = timeline_.use(a.use);
    Move move;
    move.buffer = a.buffer;
    move.offset = a.offset;
    move.bytes = a.bytes;
    move.release = a.release % n_;
    move.reserve = a.reserve % n_;
    move.ready = a.ready % n_;
    move.clean = style.keeps_copies && !a.copies_again && IsClean(first, end, k);
    if (move.clean) return move;
    int64_t after =
        use.since_write == kNone ? int64_t{use.next} - n_ : int64_t{use.op} - use.since_write;
    after = std::max(after, LastReturn(k));
    const int64_t issue = std::max(std::min<int64_t>(a.issue, a.release), after + 1);
    if (style.copies_late || a.copies_late || Round(issue - 1) != Round(after))
      after = std::max(after, issue - 1);
    keys_[k] = {issue - Round(after) * n_, a.order};
    move.after = static_cast<OpIndex>(after - Round(after) * n_);
    return move;
  }
  int64_t Round(int64_t op) const { return op >= 0 ? op / n_ : -((n_ - 1 - op) / n_); }

  bool WriteQueues() {
    Array<MoveIndex>&out = plan_->out_queue, &in = plan_->in_queue;
    out.Clear();
    in.Clear();
    for (MoveIndex m = 0; m < plan_->moves.size(); ++m) {
      if (!in.Append(m) || (!plan_->moves[m].clean && !out.Append(m))) return false;
    }
    std::sort(out.begin(), out.end(), [this](MoveIndex a, MoveIndex b) {
      const Key &x = keys_[a], &y = keys_[b];
      if (x.out_slot != y.out_slot) return x.out_slot < y.out_slot;
      return x.out_order != y.out_order ? x.out_order < y.out_order : a < b;
    });
    const auto wait = [this](const Move& m) {
      return m.ready >= m.reserve ? m.ready - m.reserve : m.ready + n_ - m.reserve;
    };
    std::sort(in.begin(), in.end(), [this, &wait](MoveIndex a, MoveIndex b) {
      const Move &x = plan_->moves[a], &y = plan_->moves[b];
      if (x.reserve != y.reserve) return x.reserve < y.reserve;
      return wait(x) != wait(y) ? wait(x) < wait(y) : a < b;
    });
    return true;
  }

  const Timeline& timeline_;
  const Array<Away>& aways_;
  Plan* plan_;
  const int64_t n_;
  Array<Key> keys_;
};

}  // namespace

DraftResult WriteMoves(const Timeline& timeline, const Machine& machine, Draft* draft, Plan* plan) {
  SortByPart(&draft->aways);
  if (!draft->keeps_parts) MergeNeighbours(&draft->aways);
  Writer writer(timeline, draft->aways, plan);
  Array<Bytes> host;
  const auto fits = [&] {
    return *std::max_element(host.begin(), host.end()) <= machine.host_budget;
  };
  if (!writer.Run({true, false})) return DraftResult::kNoMemory;
  if (machine.host_budget == kNoLimit) return DraftResult::kDone;
  for (const HostSaving saving :
       {HostSaving::kWait, HostSaving::kBack, HostSaving::kAgain, HostSaving::kLate}) {
    if (!HostBytes(timeline, *plan, &host)) return DraftResult::kNoMemory;
    if (fits()) return DraftResult::kDone;
    if (!SaveHost(timeline, machine, saving, *plan, &host, draft) || !writer.Run({true, false})) {
      return DraftResult::kNoMemory;
    }
  }
  for (const Style style : {Style{true, false}, Style{true, true}, Style{false, true}}) {
    if (!writer.Run(style)) return DraftResult::kNoMemory;
    if (!HostBytes(timeline, *plan, &host)) return DraftResult::kNoMemory;
    if (fits()) return DraftResult::kDone;
  }
  return DraftResult::kCannot;
}

}  // namespace tidemark::core::planner
