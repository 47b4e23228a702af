#include "tests/bench/planner/yardsticks.h"

#include <algorithm>

#include "tests/bench/planner/paging_walk.h"

namespace tidemark::bench {
namespace {

using core::BufferIndex;

class Lru : public PagingPolicy {
 public:
  Turn KeyOf(const PagingWalk& walk, BufferIndex b, Turn) const override { return walk.LastUse(b); }
};

class NextUse : public PagingPolicy {
 public:
  explicit NextUse(const core::Machine& machine) : in_ns_per_byte_(1e9 / machine.in_rate) {}

  Turn KeyOf(const PagingWalk& walk, BufferIndex b, Turn turn) const override {
    return -walk.NextUse(b, turn + 1);
  }

  // Copies in are laid backwards from their uses, one after the other; what must start before the
  // next boundary starts now.
  void AtBoundary(PagingWalk* walk, Turn turn) override {
    double start = 1e300;
    const auto& away = walk->Away();
    for (auto at = away.rbegin(); at != away.rend(); ++at) {
      const double length = static_cast<double>(walk->AwayBytes(at->second)) * in_ns_per_byte_;
      start = std::min(start, walk->TimeOf(at->first)) - length;
    }
    while (!walk->Away().empty() && start < walk->TimeOf(turn + 1)) {
      const auto [use, b] = *walk->Away().begin();
      start += static_cast<double>(walk->AwayBytes(b)) * in_ns_per_byte_;
      if (use <= turn || !walk->PrefetchOver(b, turn) || walk->AwayBytes(b) != 0) return;
    }
  }

 private:
  double in_ns_per_byte_;
};

class DeepUm : public PagingPolicy {
 public:
  static constexpr Turn kLookAhead = 32;  // kernels; the published best degree

  explicit DeepUm(const core::Machine& machine) : reserve_(machine.device_budget / 20) {}

  Turn KeyOf(const PagingWalk& walk, BufferIndex b, Turn) const override {
    return walk.LastReturn(b);
  }
  bool Spares(const PagingWalk& walk, BufferIndex b, Turn turn) const override {
    return walk.NextUse(b, turn) < turn + kLookAhead;
  }
  void AtBoundary(PagingWalk* walk, Turn turn) override {
    while (walk->FreeBytes() + walk->LeavingBytes() < reserve_) {
      if (!walk->StartEviction(turn, reserve_ - walk->FreeBytes() - walk->LeavingBytes())) break;
    }
    while (!walk->Away().empty()) {
      const auto [use, b] = *walk->Away().begin();
      if (use >= turn + kLookAhead || !walk->Prefetch(b, turn)) break;
      if (walk->AwayBytes(b) != 0) break;
    }
  }

 private:
  core::Bytes reserve_;
};

}  // namespace

bool LruPlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
             std::string* why_not) {
  Lru policy;
  return PagingWalk(step, machine, {.whole_buffers = false}).Run(&policy, plan, why_not);
}

bool NextUsePlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
                 std::string* why_not) {
  NextUse policy(machine);
  const PagingRules rules = {.whole_buffers = true, .drops_clean = true, .copies_out_early = true};
  return PagingWalk(step, machine, rules).Run(&policy, plan, why_not);
}

bool DeepUmPlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
                std::string* why_not) {
  DeepUm policy(machine);
  return PagingWalk(step, machine, {.whole_buffers = false}).Run(&policy, plan, why_not);
}

}  // namespace tidemark::bench
