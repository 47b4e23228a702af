#include <algorithm>

#include "core/planner/draft.h"
#include "core/planner/heap.h"

namespace tidemark::core::planner {
namespace {

constexpr uint64_t kOpsPerWork = 16;
constexpr uint64_t kWindowsPerWork = 4;
constexpr Bytes kMostRuns = 16;  // of a buffer, that leave one by one

// A window with bytes that could be away at the operation in question, and are not.
struct Candidate {
  uint32_t use = 0;
  BufferIndex buffer = 0;
  uint32_t next = 0;  // operations from now to the next use
  uint32_t at = 0;    // the operation in question, counted like the window
};

struct Farther {
  template <typename Window>
  bool operator()(const Window& a, const Window& b) const {
    return a.next != b.next ? a.next > b.next : a.use < b.use;
  }
};

class Cover {
 public:
  Cover(const Timeline& timeline, const Machine& machine, const CoverChoice& choice, Draft* draft)
      : timeline_(timeline), machine_(machine), choice_(choice), draft_(draft) {}

  DraftResult Run() {
    const uint32_t n = timeline_.ops();
    draft_->work += n / kOpsPerWork + draft_->aways.size();
    const DraftResult result = Walk(n);
    draft_->work += looked_at_ / kWindowsPerWork;
    return result;
  }

 private:
  DraftResult Walk(uint32_t n) {
    if (machine_.device_budget < timeline_.largest_floor()) return DraftResult::kCannot;
    if (!SumAways(n, draft_->aways, &away_)) return DraftResult::kNoMemory;
    OpIndex i = 0;
    while (i < n && Excess(i) == 0) ++i;
    if (i == n) return DraftResult::kDone;
    if (!Prepare(i)) return DraftResult::kNoMemory;
    for (; i < n; ++i) {
      more_ += later_[i];
      if (Excess(i) == 0) continue;
      if (!OpenBefore(i)) return DraftResult::kNoMemory;
      const DraftResult result = CoverAt(i);
      if (result != DraftResult::kDone) return result;
    }
    return DraftResult::kDone;
  }

  bool Prepare(OpIndex i) {
    if (!later_.Resize(timeline_.ops(), 0) || !head_.Resize(timeline_.uses(), kNone) ||
        !link_.Resize(draft_->aways.size())) {
      return false;
    }
    for (uint32_t k = 0; k < draft_->aways.size(); ++k) {
      link_[k] = head_[draft_->aways[k].use];
      head_[draft_->aways[k].use] = k;
    }
    return OpenWrapping(i);
  }

  // At the operation where the walk is.
  Bytes Excess(OpIndex i) const {
    const Bytes device = timeline_.live(i) - away_[i] - more_;
    return device > machine_.device_budget ? device - machine_.device_budget : 0;
  }

  // So much more is away from `from` to before `to`, counted like a part. What is behind operation
  // i, where the walk is, is settled and no longer looked at.
  void AddAway(OpIndex i, uint32_t from, uint32_t to, Bytes bytes) {
    const uint32_t n = timeline_.ops(), first = from % n, end = first + (to - from);
    AddAhead(i, first, std::min(end, n), bytes);
    if (end > n) AddAhead(i, 0, end - n, bytes);
  }
  void AddAhead(OpIndex i, uint32_t from, uint32_t to, Bytes bytes) {
    if (to <= i) return;
    (from <= i ? more_ : later_[from]) += bytes;
    if (to < timeline_.ops()) later_[to] -= bytes;
  }

  DraftResult CoverAt(OpIndex i) {
    if (choice_.dice != nullptr) {
      return Gather(i) && CoverAtRandom(i) ? DraftResult::kDone : DraftResult::kNoMemory;
    }
    size_t still_open = open_.size();
    while (still_open > 0 && open_[still_open - 1].next <= i) --still_open;
    (void)open_.Resize(still_open);  // shrinks
    for (const Open& open : open_) {
      if (Excess(i) == 0) break;
      ++looked_at_;
      Extend({open.use, open.buffer, open.next - i, i + open.base}, i);
    }
    while (Excess(i) != 0 && !fresh_.empty() && fresh_[0].key > i) {
      const Fresh top = fresh_[0];
      looked_at_ += kWindowsPerWork;
      const Candidate c{top.piece, top.buffer, top.key - i, i + top.base};
      if (!AddParts(c, i)) return DraftResult::kNoMemory;
      if (Excess(i) != 0) PopHeap<FarthestOnTop>(&fresh_);  // all of it is away
    }
    return Excess(i) == 0 ? DraftResult::kDone : DraftResult::kCannot;
  }

  // One candidate after the other, whether it is away in part or not; the part that is to stay as
  // it is only where nothing else is left. False: no host memory.
  bool CoverAtRandom(OpIndex i) {
    const auto count = static_cast<uint32_t>(candidates_.size());
    for (uint32_t k = 0; k + 1 < count; ++k) {
      std::swap(candidates_[k], candidates_[k + choice_.dice->Below(count - k)]);
    }
    const bool takes_little = choice_.dice->Below(2) == 0;
    for (const Candidate& c : candidates_) {
      if (Excess(i) == 0) return true;
      Extend(c, i);
      if (Excess(i) != 0 && takes_little && !AddOneChunk(c, i)) return false;
      if (Excess(i) != 0 && !takes_little && !AddParts(c, i)) return false;
    }
    for (const Candidate& c : candidates_) {
      if (Excess(i) == 0) return true;
      if (!AddParts(c, i)) return false;
    }
    choice_.stays = kNone;
    for (const Candidate& c : candidates_) Extend(c, i);
    return true;
  }

  // A window that may be open, and what its operations count from.
  struct Open {
    uint32_t use;
    BufferIndex buffer;
    uint32_t base;
    uint32_t next;  // the next use, counted from this iteration's first operation
  };
  // The same with bytes that are in no part yet, as an entry of a heap.
  struct Fresh {
    uint32_t key;    // Open::next
    uint32_t piece;  // Open::use
    BufferIndex buffer;
    uint32_t base;
  };

  // Random choice goes through all open windows in any order; else those of the draft as it came in
  // stand by their next use, farthest first, and what can leave in a new part is in a heap.
  bool Append(uint32_t use, BufferIndex buffer, uint32_t base) {
    const Open open{use, buffer, base, timeline_.use(use).next - base};
    if (choice_.dice != nullptr) return open_.Append(open);
    if (!PushHeap<FarthestOnTop>(&fresh_, Fresh{open.next, use, buffer, base})) return false;
    if (head_[use] == kNone) return true;
    if (!open_.Append(open)) return false;
    Open* place = std::upper_bound(open_.begin(), open_.end() - 1, open, Farther());
    std::move_backward(place, open_.end() - 1, open_.end());
    *place = open;
    return true;
  }

  // Windows that go across the iteration's end, and are not closed before operation i.
  bool OpenWrapping(OpIndex i) {
    const uint32_t n = timeline_.ops();
    for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
      const uint32_t first = timeline_.first_use(b), end = timeline_.first_use(b + 1);
      if (first == end || !timeline_.CanMove(b) || timeline_.use(end - 1).next == kNone) continue;
      if (timeline_.use(end - 1).next > n + i && !Append(end - 1, b, n)) return false;
    }
    return true;
  }

  // Those after operations up to i, since the last time.
  bool OpenBefore(OpIndex i) {
    for (; opened_ < timeline_.first_user(i); ++opened_) {
      const BufferIndex b = timeline_.user(opened_);
      const uint32_t use = timeline_.use_of_user(opened_);
      const bool is_open = timeline_.IsOpen(timeline_.use(use)) && timeline_.use(use).next > i;
      if (is_open && timeline_.CanMove(b) && !Append(use, b, 0)) return false;
    }
    return true;
  }

  bool Gather(OpIndex i) {
    candidates_.Clear();
    looked_at_ += open_.size();
    size_t kept = 0;
    for (const Open& open : open_) {
      if (open.next <= i) continue;  // closed by now
      if (!candidates_.Append({open.use, open.buffer, open.next - i, i + open.base})) return false;
      open_[kept++] = open;
    }
    return open_.Resize(kept);
  }

  // Parts of the window that are away already, but not yet or no longer at `at`.
  void Extend(const Candidate& c, OpIndex i) {
    for (uint32_t k = head_[c.use]; k != kNone && Excess(i) != 0; k = link_[k]) {
      if (k == choice_.stays) continue;
      Away& a = draft_->aways[k];
      if (a.release > c.at) AddAway(i, c.at, a.release, a.bytes);
      if (a.reserve <= c.at) AddAway(i, a.reserve, c.at + 1, a.bytes);
      a.release = std::min(a.release, c.at);
      a.reserve = std::max(a.reserve, c.at + 1);
      a.issue = std::min(a.issue, static_cast<int32_t>(a.release));
      a.ready = std::max(a.ready, a.reserve);
    }
  }

  // The first bytes from `start` on that are in no part of the window yet.
  Bytes FirstFree(uint32_t use, Bytes start) const {
    for (uint32_t k = head_[use]; k != kNone;) {
      const Away& a = draft_->aways[k];
      const bool covers = a.offset <= start && start < a.offset + a.bytes;
      k = covers ? head_[use] : link_[k];
      if (covers) start = a.offset + a.bytes;
    }
    return start;
  }

  bool AddParts(const Candidate& c, OpIndex i) {
    const Bytes whole = timeline_.buffer(c.buffer).bytes;
    for (Bytes start = FirstFree(c.use, 0); start < whole && Excess(i) != 0;
         start = FirstFree(c.use, start)) {
      Bytes end = std::min(whole, start + RoundUp(Excess(i), machine_.chunk_bytes));
      for (uint32_t k = head_[c.use]; k != kNone; k = link_[k]) {
        if (draft_->aways[k].offset > start) end = std::min(end, draft_->aways[k].offset);
      }
      if (!AddPart(c, i, start, end - start)) return false;
    }
    return true;
  }

  // Any chunk of the window, or a run of them if there are many, that is in no part yet: if the
  // first one tried is not.
  bool AddOneChunk(const Candidate& c, OpIndex i) {
    const Bytes whole = timeline_.buffer(c.buffer).bytes;
    const Bytes run = RoundUp(whole / kMostRuns + 1, machine_.chunk_bytes);
    const Bytes start = run * choice_.dice->Below(static_cast<uint32_t>((whole - 1) / run + 1));
    const Bytes end = std::min(start + run, whole);
    for (uint32_t k = head_[c.use]; k != kNone; k = link_[k]) {
      const Away& a = draft_->aways[k];
      if (a.offset < end && start < a.offset + a.bytes) return true;
    }
    return AddPart(c, i, start, end - start);
  }

  bool AddPart(const Candidate& c, OpIndex i, Bytes offset, Bytes bytes) {
    Away part;
    part.buffer = c.buffer;
    part.use = c.use;
    part.offset = offset;
    part.bytes = bytes;
    part.release = c.at;
    part.reserve = part.ready = c.at + c.next;
    part.issue = static_cast<int32_t>(c.at);
    const bool leaves_early = choice_.dice != nullptr && choice_.dice->Below(2) == 0;
    if (leaves_early) part.issue = timeline_.use(c.use).FirstIssue();
    part.order = static_cast<uint32_t>(draft_->aways.size());
    AddAway(i, part.release, part.reserve, part.bytes);
    if (!link_.Append(head_[c.use])) return false;
    head_[c.use] = part.order;
    return draft_->aways.Append(part);
  }

  const Timeline& timeline_;
  const Machine& machine_;
  CoverChoice choice_;
  Draft* draft_;
  Array<Bytes> away_;       // per operation: in the draft as it came in,
  Array<Bytes> later_;      // and what of this walk changes there; ahead of it only
  Bytes more_ = 0;          // sum of that up to where the walk is
  uint64_t looked_at_ = 0;  // windows
  uint32_t opened_ = 0;     // users of operations whose windows were looked at
  Array<Candidate> candidates_;
  Array<Open> open_;      // where choice is random; else those with parts of the draft that came in
  Array<Fresh> fresh_;    // farthest next use on top; where choice is not random
  Array<uint32_t> head_;  // per use: the newest part of its window, an index of the draft ...
  Array<uint32_t> link_;  // ... and per part the one before it
};

}  // namespace

DraftResult CoverDemand(const Timeline& timeline, const Machine& machine, Draft* draft,
                        const CoverChoice& choice) {
  return Cover(timeline, machine, choice, draft).Run();
}

}  // namespace tidemark::core::planner
