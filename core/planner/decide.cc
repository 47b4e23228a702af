#include <algorithm>

#include "core/planner/evaluate.h"
#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

class Judge {
 public:
  Judge(const Timeline& timeline, const Machine& machine, Plan* plan)
      : timeline_(timeline), machine_(machine), plan_(plan), n_(timeline.ops()) {}

  bool Run() {
    if (!Sum()) return false;
    plan_->decisions.Clear();
    for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
      for (uint32_t u = timeline_.first_use(b); u < timeline_.first_use(b + 1); ++u) {
        const Use& use = timeline_.use(u);
        if (!timeline_.IsOpen(use)) continue;
        const WindowDecision decision{b, use.op, use.next % n_, Verdict(b, u)};
        if (!plan_->decisions.Append(decision)) return false;
      }
    }
    return true;
  }

 private:
  bool Sum() {
    if (!taken_.Resize(timeline_.uses(), 0) || !tight_.Resize(2 * size_t{n_} + 1, 0) ||
        !time_.Resize(2 * size_t{n_} + 1, 0) || !HostBytes(timeline_, *plan_, &host_)) {
      return false;
    }
    for (const Move& move : plan_->moves) {
      const uint32_t window = timeline_.WindowOf(move.buffer, move.release);
      if (window != kNone) taken_[window] += move.bytes;
    }
    for (uint32_t i = 0; i < 2 * n_; ++i) {
      tight_[i + 1] = tight_[i] + (timeline_.live(i % n_) > machine_.device_budget ? 1 : 0);
      time_[i + 1] = time_[i] + static_cast<double>(timeline_.step().ops[i % n_].duration);
    }
    return true;
  }

  WindowVerdict Verdict(BufferIndex b, uint32_t u) const {
    const Use& use = timeline_.use(u);
    const Bytes bytes = timeline_.buffer(b).bytes;
    if (taken_[u] >= bytes && bytes != 0) return WindowVerdict::kTaken;
    if (taken_[u] != 0) return WindowVerdict::kTakenInPart;
    if (!timeline_.buffer(b).movable) return WindowVerdict::kImmovable;
    if (!timeline_.CanMove(b)) return WindowVerdict::kTooSmall;
    if (tight_[use.next] == tight_[use.op + 1]) return WindowVerdict::kNotNeeded;
    const double copies =
        static_cast<double>(bytes) * 1e9 * (1 / machine_.out_rate + 1 / machine_.in_rate);
    if (copies > time_[use.next] - time_[use.op + 1]) return WindowVerdict::kTooShort;
    return HostHasRoom(use, bytes) ? WindowVerdict::kWorseThanOthers : WindowVerdict::kHostFull;
  }

  bool HostHasRoom(const Use& use, Bytes bytes) const {
    if (machine_.host_budget == kNoLimit) return true;
    for (uint32_t i = use.op + 1; i < use.next; ++i) {
      const Bytes held = host_[i % n_];
      if (held >= machine_.host_budget || machine_.host_budget - held < bytes) return false;
    }
    return true;
  }

  const Timeline& timeline_;
  const Machine& machine_;
  Plan* plan_;
  const uint32_t n_;
  Array<Bytes> taken_;  // per use: bytes that leave in the window after it
  Array<uint32_t> tight_;
  Array<double> time_;
  Array<Bytes> host_;
};

}  // namespace

bool Decide(const Timeline& timeline, const Machine& machine, Plan* plan) {
  return Judge(timeline, machine, plan).Run();
}

}  // namespace tidemark::core::planner
