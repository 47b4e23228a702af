#include <algorithm>

#include "core/planner/draft.h"

namespace tidemark::core::planner {
namespace {

// A window with bytes that could be away at the operation in question, and are not.
struct Candidate {
  uint32_t use = 0;
  BufferIndex buffer = 0;
  uint32_t next = 0;  // operations from now to the next use
  uint32_t at = 0;    // the operation in question, counted like the window
};

class Cover {
 public:
  Cover(const Timeline& timeline, const Machine& machine, Draft* draft)
      : timeline_(timeline), machine_(machine), draft_(draft) {}

  DraftResult Run() {
    const uint32_t n = timeline_.ops();
    if (machine_.device_budget < timeline_.largest_floor()) return DraftResult::kCannot;
    if (!away_.Resize(n, 0)) return DraftResult::kNoMemory;
    for (const Away& a : draft_->aways) {  // first as differences
      const uint32_t from = a.release % n, to = a.reserve % n;
      away_[from] += a.bytes;
      away_[to] -= a.bytes;
      if (to < from) away_[0] += a.bytes;
    }
    for (uint32_t i = 1; i < n; ++i) away_[i] += away_[i - 1];
    for (OpIndex i = 0; i < n; ++i) {
      if (timeline_.live(i) - away_[i] <= machine_.device_budget) continue;
      const DraftResult result = CoverAt(i);
      if (result != DraftResult::kDone) return result;
    }
    return DraftResult::kDone;
  }

 private:
  Bytes Excess(OpIndex i) const {
    const Bytes device = timeline_.live(i) - away_[i];
    return device > machine_.device_budget ? device - machine_.device_budget : 0;
  }

  DraftResult CoverAt(OpIndex i) {
    if (!Gather(i)) return DraftResult::kNoMemory;
    std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
      return a.next != b.next ? a.next > b.next : a.use < b.use;
    });
    for (const Candidate& c : candidates_) {
      if (Excess(i) == 0) break;
      Extend(c, i);
    }
    for (const Candidate& c : candidates_) {
      if (Excess(i) == 0) break;
      if (!AddPart(c, i)) return DraftResult::kNoMemory;
    }
    return Excess(i) == 0 ? DraftResult::kDone : DraftResult::kCannot;
  }

  bool Gather(OpIndex i) {
    const uint32_t n = timeline_.ops();
    candidates_.Clear();
    for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
      if (!timeline_.CanMove(b)) continue;
      for (uint32_t u = timeline_.first_use(b); u < timeline_.first_use(b + 1); ++u) {
        const Use& use = timeline_.use(u);
        if (use.next == kNone) continue;
        const uint32_t at = i > use.op ? i : i + n;
        if (at >= use.next) continue;
        if (!candidates_.Append({u, b, use.next - at, at})) return false;
        break;  // one window of a buffer is open at a time
      }
    }
    return true;
  }

  // Parts of the window that are away already, but not yet or no longer at `at`.
  void Extend(const Candidate& c, OpIndex i) {
    const uint32_t n = timeline_.ops();
    for (Away& a : draft_->aways) {
      if (a.use != c.use) continue;
      for (; a.release > c.at; --a.release) away_[(a.release - 1) % n] += a.bytes;
      for (; a.reserve <= c.at; ++a.reserve) away_[a.reserve % n] += a.bytes;
      a.issue = std::min(a.issue, static_cast<int32_t>(a.release));
      if (Excess(i) == 0) return;
    }
  }

  bool AddPart(const Candidate& c, OpIndex i) {
    Bytes start = 0;  // parts are taken from the front
    for (const Away& a : draft_->aways) {
      if (a.use == c.use) start = std::max(start, a.offset + a.bytes);
    }
    const Bytes bytes = timeline_.buffer(c.buffer).bytes;
    if (start >= bytes) return true;
    Away part;
    part.buffer = c.buffer;
    part.use = c.use;
    part.offset = start;
    part.bytes = std::min(RoundUp(Excess(i), machine_.chunk_bytes), bytes - start);
    part.release = c.at;
    part.reserve = c.at + c.next;
    part.issue = static_cast<int32_t>(c.at);
    part.order = static_cast<uint32_t>(draft_->aways.size());
    for (uint32_t k = part.release; k < part.reserve; ++k) {
      away_[k % timeline_.ops()] += part.bytes;
    }
    return draft_->aways.Append(part);
  }

  const Timeline& timeline_;
  const Machine& machine_;
  Draft* draft_;
  Array<Bytes> away_;
  Array<Candidate> candidates_;
};

}  // namespace

DraftResult CoverDemand(const Timeline& timeline, const Machine& machine, Draft* draft) {
  return Cover(timeline, machine, draft).Run();
}

}  // namespace tidemark::core::planner
