#include <algorithm>

#include "core/planner/draft.h"
#include "core/planner/evaluate.h"
#include "core/planner/fit_host.h"

namespace tidemark::core::planner {
namespace {

constexpr uint64_t kWorkToWrite = 8;     // a part's moves,
constexpr uint64_t kWorkToFitHost = 12;  // and to look whether the host holds the copies

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
             a.ready == b.ready && a.fetch == b.fetch && a.fetch_order == b.fetch_order &&
             a.issue == b.issue && a.copies_late == b.copies_late &&
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
    places_.Clear();
    if (!plan_->moves.Reserve(aways_.size()) || !places_.Reserve(aways_.size()) ||
        !returns_.Resize(aways_.size())) {
      return false;
    }
    for (size_t first = 0, end = 0; first < aways_.size(); first = end) {
      end = PartEnd(aways_, first);
      const bool is_first = first == 0 || aways_[first - 1].buffer != aways_[first].buffer;
      if (is_first) overlaps_ = Overlap(first);
      if (is_first && overlaps_ && !NoteReturns(first)) return false;
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
  struct Place {  // of a move that copies out, in the queue
    int64_t slot;
    uint32_t order;
    MoveIndex move;
  };
  struct Return {  // of a move: its place in the queue, and when it is due
    uint32_t slot;
    uint32_t order;
    uint32_t ready;
    MoveIndex move;
  };
  static constexpr int64_t kNeverAway = 0, kAway = 1;  // until NoteReturns is done

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

  // Whether parts of the buffer, from `first` on, are cut one way for one window and another way
  // for another, or away twice in one.
  bool Overlap(size_t first) const {
    Bytes covered = 0;
    for (size_t k = first; k < aways_.size() && aways_[k].buffer == aways_[first].buffer; ++k) {
      const bool repeats = k > first && IsSamePart(aways_[k - 1], aways_[k]);
      if (repeats ? aways_[k - 1].use == aways_[k].use : aways_[k].offset < covered) return true;
      covered = aways_[k].offset + aways_[k].bytes;
    }
    return false;
  }

  // The last return before window k of what leaves in it, counted like the window.
  int64_t LastReturn(size_t first, size_t end, size_t k) const {
    if (overlaps_) return last_return_[aways_[k].use - first_use_];
    return k == first ? int64_t{timeline_.use(aways_[end - 1].use).next} - n_
                      : int64_t{timeline_.use(aways_[k - 1].use).next};
  }

  // For each window of the buffer whose parts start at `first`: the last return of any part of it
  // before that window, counted like the window.
  bool NoteReturns(size_t first) {
    const BufferIndex b = aways_[first].buffer;
    first_use_ = timeline_.first_use(b);
    const uint32_t uses = timeline_.first_use(b + 1) - first_use_;
    last_return_.Clear();
    if (!last_return_.Resize(uses, kNeverAway)) return false;
    uint32_t last = 0;
    for (size_t k = first; k < aways_.size() && aways_[k].buffer == b; ++k) {
      last_return_[aways_[k].use - first_use_] = kAway;
      last = std::max(last, aways_[k].use);
    }
    int64_t returned = int64_t{timeline_.use(last).next} - n_;
    for (uint32_t u = 0; u < uses; ++u) {
      const bool is_away = last_return_[u] == kAway;
      last_return_[u] = returned;
      if (is_away) returned = timeline_.use(first_use_ + u).next;
    }
    return true;
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
    const auto round = static_cast<uint32_t>(a.reserve / n_ * n_);
    returns_[k] = {std::max(a.fetch, a.reserve) - round, a.fetch_order, a.ready - round,
                   static_cast<MoveIndex>(k)};
    if (move.clean) return move;
    int64_t after =
        use.since_write == kNone ? int64_t{use.next} - n_ : int64_t{use.op} - use.since_write;
    after = std::max(after, LastReturn(first, end, k));
    const int64_t issue = std::max(std::min<int64_t>(a.issue, a.release), after + 1);
    if (style.copies_late || a.copies_late || Round(issue - 1) != Round(after))
      after = std::max(after, issue - 1);
    (void)places_.Append(
        {issue - Round(after) * n_, a.order, static_cast<MoveIndex>(k)});  // reserved
    move.after = static_cast<OpIndex>(after - Round(after) * n_);
    return move;
  }
  int64_t Round(int64_t op) const { return op >= 0 ? op / n_ : -((n_ - 1 - op) / n_); }

  bool WriteQueues() {
    Array<MoveIndex>&out = plan_->out_queue, &in = plan_->in_queue;
    if (!out.Resize(places_.size()) || !in.Resize(returns_.size())) return false;
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      if (a.slot != b.slot) return a.slot < b.slot;
      return a.order != b.order ? a.order < b.order : a.move < b.move;
    });
    for (size_t k = 0; k < out.size(); ++k) out[k] = places_[k].move;
    std::sort(returns_.begin(), returns_.end(), [](const Return& a, const Return& b) {
      if (a.slot != b.slot) return a.slot < b.slot;
      if (a.order != b.order) return a.order < b.order;
      return a.ready != b.ready ? a.ready < b.ready : a.move < b.move;
    });
    for (size_t k = 0; k < in.size(); ++k) in[k] = returns_[k].move;
    return true;
  }

  const Timeline& timeline_;
  const Array<Away>& aways_;
  Plan* plan_;
  const int64_t n_;
  Array<Place> places_;
  Array<Return> returns_;
  bool overlaps_ = false;       // parts of the buffer at hand
  Array<int64_t> last_return_;  // of NoteReturns: by window of one buffer,
  uint32_t first_use_ = 0;      // from this one on
};

}  // namespace

DraftResult WriteMoves(const Timeline& timeline, const Machine& machine, Draft* draft, Plan* plan) {
  SortByPart(&draft->aways);
  if (!draft->keeps_parts) MergeNeighbours(&draft->aways);
  draft->work += kWorkToWrite * draft->aways.size();
  Writer writer(timeline, draft->aways, plan);
  if (!writer.Run({true, false})) return DraftResult::kNoMemory;
  if (machine.host_budget == kNoLimit) return DraftResult::kDone;
  Array<Bytes> host;
  // kCannot: not as the plan is at present.
  const auto fit = [&] {
    draft->work += kWorkToFitHost * draft->aways.size();
    if (!HostBytes(timeline, *plan, &host)) return DraftResult::kNoMemory;
    const bool fits = *std::max_element(host.begin(), host.end()) <= machine.host_budget;
    return fits ? DraftResult::kDone : DraftResult::kCannot;
  };
  for (const HostSaving saving :
       {HostSaving::kWait, HostSaving::kBack, HostSaving::kAgain, HostSaving::kLate}) {
    const DraftResult result = fit();
    if (result != DraftResult::kCannot) return result;
    if (!SaveHost(timeline, machine, saving, *plan, &host, draft) || !writer.Run({true, false})) {
      return DraftResult::kNoMemory;
    }
  }
  DraftResult result = fit();
  for (const Style style : {Style{true, true}, Style{false, true}}) {
    if (result != DraftResult::kCannot) return result;
    if (!writer.Run(style)) return DraftResult::kNoMemory;
    result = fit();
  }
  return result;
}

}  // namespace tidemark::core::planner
