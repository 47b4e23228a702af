#include <algorithm>

#include "core/planner/draft.h"
#include "core/planner/evaluate.h"
#include "core/planner/fit_host.h"

namespace tidemark::core::planner {
namespace {

constexpr uint64_t kWorkToWrite = 8;     // a part's moves,
constexpr uint64_t kWorkToFitHost = 24;  // and to look whether the host holds the copies

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
    places_.Clear();
    if (!plan_->moves.Reserve(aways_.size()) || !places_.Reserve(aways_.size())) return false;
    for (size_t first = 0, end = 0; first < aways_.size(); first = end) {
      end = PartEnd(aways_, first);
      const bool is_first = first == 0 || aways_[first - 1].buffer != aways_[first].buffer;
      if (is_first && !NoteReturns(first)) return false;
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
  struct Return {  // of a move: when it is put into the queue, and how long after it is due
    OpIndex reserve;
    uint32_t wait;
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
    if (move.clean) return move;
    int64_t after =
        use.since_write == kNone ? int64_t{use.next} - n_ : int64_t{use.op} - use.since_write;
    after = std::max(after, last_return_[a.use - first_use_]);
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
    const Array<Move>& moves = plan_->moves;
    if (!out.Resize(places_.size()) || !in.Resize(moves.size()) || !returns_.Resize(in.size())) {
      return false;
    }
    std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
      if (a.slot != b.slot) return a.slot < b.slot;
      return a.order != b.order ? a.order < b.order : a.move < b.move;
    });
    for (size_t k = 0; k < out.size(); ++k) out[k] = places_[k].move;
    for (MoveIndex m = 0; m < in.size(); ++m) {
      const OpIndex reserve = moves[m].reserve, ready = moves[m].ready;
      const auto wait = ready >= reserve ? ready - reserve : ready + timeline_.ops() - reserve;
      returns_[m] = {reserve, wait, m};
    }
    std::sort(returns_.begin(), returns_.end(), [](const Return& a, const Return& b) {
      if (a.reserve != b.reserve) return a.reserve < b.reserve;
      return a.wait != b.wait ? a.wait < b.wait : a.move < b.move;
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
  Array<int64_t> last_return_;  // of NoteReturns: by window of one buffer,
  uint32_t first_use_ = 0;      // from this one on
};

}  // namespace

DraftResult WriteMoves(const Timeline& timeline, const Machine& machine, Draft* draft, Plan* plan) {
  SortByPart(&draft->aways);
  if (!draft->keeps_parts) MergeNeighbours(&draft->aways);
  draft->work += kWorkToWrite * draft->aways.size();
  Writer writer(timeline, draft->aways, plan);
  Array<Bytes> host;
  const auto fits = [&] {
    return *std::max_element(host.begin(), host.end()) <= machine.host_budget;
  };
  if (!writer.Run({true, false})) return DraftResult::kNoMemory;
  if (machine.host_budget == kNoLimit) return DraftResult::kDone;
  for (const HostSaving saving :
       {HostSaving::kWait, HostSaving::kBack, HostSaving::kAgain, HostSaving::kLate}) {
    draft->work += kWorkToFitHost * draft->aways.size();
    if (!HostBytes(timeline, *plan, &host)) return DraftResult::kNoMemory;
    if (fits()) return DraftResult::kDone;
    if (!SaveHost(timeline, machine, saving, *plan, &host, draft) || !writer.Run({true, false})) {
      return DraftResult::kNoMemory;
    }
  }
  for (const Style style : {Style{true, false}, Style{true, true}, Style{false, true}}) {
    draft->work += kWorkToFitHost * draft->aways.size();
    if (!writer.Run(style)) return DraftResult::kNoMemory;
    if (!HostBytes(timeline, *plan, &host)) return DraftResult::kNoMemory;
    if (fits()) return DraftResult::kDone;
  }
  return DraftResult::kCannot;
}

}  // namespace tidemark::core::planner
