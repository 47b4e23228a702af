// Implementation of tests/bench/allocator/measure.h. Threads: none.

#include "tests/bench/allocator/measure.h"

namespace tidemark::bench {
namespace {

constexpr Bytes kResolution = 2 * kMiB;
constexpr Bytes kResolutionShare = 4000;

class Run {
 public:
  Run(const replay::Trace& trace, const PolicyKind& kind, Bytes capacity)
      : trace_(trace), device_(capacity) {
    for (uint32_t p = 0; p < trace.processes(); ++p) policies_.push_back(kind.make(&device_));
    if (!trace.steps.empty()) steady_from_ = trace.steps[trace.steps.size() / 2];
  }

  Replayed Play(size_t peak_event) {
    Replayed result;
    uint64_t steady_start = 0;
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      if (i == steady_from_) steady_start = Mapped();
      const uint64_t before = i >= steady_from_ ? Mapped() : 0;
      if (!Apply(trace_.events[i])) return result;
      if (i >= steady_from_)
        result.largest_burst = std::max(result.largest_burst, Mapped() - before);
      if (i == peak_event) result.at_peak = Sum();
    }
    result.completed = true;
    result.peak_held = device_.peak();
    const size_t steps = trace_.steps.size() - trace_.steps.size() / 2;
    if (steps != 0) {
      result.mapped_per_step =
          static_cast<double>(Mapped() - steady_start) / static_cast<double>(steps);
    }
    return result;
  }

 private:
  bool Apply(const replay::Event& event) {
    const replay::BlockInfo& block = trace_.blocks[event.block];
    Policy& policy = *policies_[block.process];
    if (event.allocate) return policy.Allocate(event.block, block.bytes, block.stream);
    policy.Free(event.block);
    return true;
  }

  uint64_t Mapped() const {
    uint64_t sum = 0;
    for (const auto& policy : policies_) sum += policy->mapped_chunks();
    return sum;
  }

  Usage Sum() const {
    Usage sum;
    for (const auto& policy : policies_) {
      const Usage one = policy->usage();
      sum.requested += one.requested;
      sum.allocated += one.allocated;
      sum.free_held += one.free_held;
      sum.largest_free = std::max(sum.largest_free, one.largest_free);
    }
    return sum;
  }

  const replay::Trace& trace_;
  Device device_;
  std::vector<std::unique_ptr<Policy>> policies_;
  size_t steady_from_ = ~size_t{0};
};

}  // namespace

Replayed Replay(const replay::Trace& trace, const PolicyKind& kind, Bytes capacity,
                size_t peak_event) {
  return Run(trace, kind, capacity).Play(peak_event);
}

Bytes SearchStep(Bytes requested) { return std::max(kResolution, requested / kResolutionShare); }

Bytes MinimumCapacity(const replay::Trace& trace, const PolicyKind& kind, Bytes requested,
                      Bytes enough) {
  if (!Replay(trace, kind, enough, 0).completed) return 0;
  Bytes fails = requested == 0 ? 0 : requested - 1;
  while (enough - fails > SearchStep(requested)) {
    const Bytes middle = fails + (enough - fails) / 2;
    if (Replay(trace, kind, middle, 0).completed) {
      enough = middle;
    } else {
      fails = middle;
    }
  }
  return enough;
}

}  // namespace tidemark::bench
