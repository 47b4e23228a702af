#include "core/planner/price_draft.h"

#include <algorithm>

#include "core/planner/fluid_prices.h"
#include "core/planner/fluid_step.h"

namespace tidemark::core::planner {
namespace {

constexpr size_t kPriceWork = 2'500'000;  // operations of gaps looked at, in all steps together
constexpr size_t kFewestSteps = 250;      // with fewer it comes to nothing
constexpr size_t kMostSteps = 400;

class Rounding {
 public:
  Rounding(const Timeline& timeline, Bytes chunk, const FluidStep& step, const FluidPrices& prices,
           Draft* draft)
      : timeline_(timeline), chunk_(chunk), step_(step), prices_(prices), draft_(draft) {}

  bool Run() {
    for (const FluidChain& chain : step_.chains) {
      Sort(chain);
      if (!Round(chain)) return false;
    }
    return true;
  }

 private:
  static constexpr uint32_t kSamples = FluidPrices::kSamples;

  // Samples that do alike stand together. Those that do the same do not become one: smaller parts
  // let CoverDemand mend what rounding broke at less cost.
  void Sort(const FluidChain& chain) {
    for (uint32_t s = 0; s < kSamples; ++s) sorted_[s] = s;
    std::sort(sorted_, sorted_ + kSamples, [&](uint32_t a, uint32_t b) {
      for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
        const FluidChoice &x = prices_.choice(a, g), &y = prices_.choice(b, g);
        if (x.release != y.release) return x.release < y.release;
        if (x.reserve != y.reserve) return x.reserve > y.reserve;
        if (x.copy_slot != y.copy_slot) return x.copy_slot < y.copy_slot;
      }
      return a < b;
    });
  }

  // Each sample gets an equal part of the chunks.
  bool Round(const FluidChain& chain) {
    const Bytes whole = timeline_.buffer(chain.buffer).bytes;
    const Bytes chunks = (whole - 1) / chunk_ + 1;
    const auto sample_of = [&](Bytes at) { return (2 * at + 1) * kSamples / (2 * chunks); };
    Bytes end = 0;
    for (Bytes at = 0; at < chunks; at = end) {
      for (end = at + 1; end < chunks && sample_of(end) == sample_of(at);) ++end;
      for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
        const FluidChoice& choice = prices_.choice(sorted_[sample_of(at)], g);
        if (choice.release == kNone) continue;
        Away a = WhenAway(chain, step_.gaps[g], choice);
        a.offset = at * chunk_;
        a.bytes = std::min(end * chunk_, whole) - a.offset;
        if (!draft_->aways.Append(a)) return false;
      }
    }
    return true;
  }

  Away WhenAway(const FluidChain& chain, const FluidGap& gap, const FluidChoice& choice) const {
    Away a;
    a.buffer = chain.buffer;
    a.use = gap.use;
    a.release = choice.release - gap.base;
    a.reserve = choice.reserve - gap.base;
    a.ready = gap.next - gap.base;
    // A copy in an operation's slot has to be in the queue before that operation.
    const auto boundary = static_cast<int32_t>((choice.copy_slot + 2) / 3);
    a.issue = static_cast<int32_t>(a.release);
    if (!chain.is_clean) a.issue = std::min(a.issue, boundary - static_cast<int32_t>(gap.base));
    a.order = choice.copy_slot;
    return a;
  }

  const Timeline& timeline_;
  const Bytes chunk_;
  const FluidStep& step_;
  const FluidPrices& prices_;
  Draft* draft_;
  uint32_t sorted_[kSamples] = {};
};

}  // namespace

DraftResult DraftByPrices(const Timeline& timeline, const Machine& machine, double stall,
                          Draft* draft) {
  draft->aways.Clear();
  FluidStep step;
  constexpr size_t kMostSize = kPriceWork / kFewestSteps;
  if (!step.Build(timeline, machine, kMostSize)) return DraftResult::kNoMemory;
  if (step.size > kMostSize || step.gaps.empty()) return DraftResult::kCannot;
  FluidPrices prices(step, timeline, machine);
  const auto steps = static_cast<uint32_t>(std::min(kPriceWork / step.size, kMostSteps));
  if (!prices.Run(steps, stall)) return DraftResult::kNoMemory;
  Rounding rounding(timeline, machine.chunk_bytes, step, prices, draft);
  return rounding.Run() ? DraftResult::kDone : DraftResult::kNoMemory;
}

}  // namespace tidemark::core::planner
