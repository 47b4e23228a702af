#include "core/planner/prices/round_mix.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr Bytes kMostParts = 4096;  // of all that could leave, about

// Where in some shares a byte stands, as q grows.
class Quantile {
 public:
  Quantile(const FluidMix& mix, const FluidShares& shares) : mix_(mix), shares_(shares) {}

  uint32_t At(double q) {
    for (; k_ + 1 < shares_.count; ++k_) {
      const double next = sum_ + mix_.share(shares_, k_);
      if (next > q) break;
      sum_ = next;
    }
    return shares_.first + k_;
  }

 private:
  const FluidMix& mix_;
  const FluidShares& shares_;
  uint32_t k_ = 0;
  double sum_ = 0;  // of the shares before it
};

// Gives each part of a buffer its times: what leaves first is copied first and returns first. So a
// part is copied before it leaves and leaves before it returns, since the bytes do so.
class Rounding {
 public:
  Rounding(const Timeline& timeline, Bytes chunk, const FluidStep& step, const FluidMix& mix,
           Draft* draft)
      : timeline_(timeline), chunk_(chunk), step_(step), mix_(mix), draft_(draft) {}

  bool Run() {
    double all = 0;
    for (const FluidClass& alike : step_.classes) all += alike.bytes;
    part_ = RoundUp(static_cast<Bytes>(all) / kMostParts + 1, chunk_);
    for (const FluidChain& chain : step_.chains) {
      for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
        if (!Round(chain, g)) return false;
      }
    }
    return true;
  }

 private:
  bool Round(const FluidChain& chain, uint32_t g) {
    const uint32_t like = step_.chains[chain.first_alike].first_gap + g - chain.first_gap;
    const FluidShares& releases = mix_.release(like);
    Quantile release(mix_, releases), reserve(mix_, mix_.reserve(like)), in(mix_, mix_.in(like)),
        out(mix_, mix_.out(chain.alike));
    double away = 0;
    for (uint32_t k = 0; k < releases.count; ++k) away += mix_.share(releases, k);
    const Bytes whole = timeline_.buffer(chain.buffer).bytes;
    const Bytes parts = (whole - 1) / part_ + 1;
    const auto alike = static_cast<double>(step_.classes[chain.alike].count);
    for (Bytes p = 0; p < parts; ++p) {
      // Chains that are alike take turns.
      const double q =
          (static_cast<double>(p) + (chain.place + 0.5) / alike) / static_cast<double>(parts);
      if (q >= away) break;
      Away a = WhenAway(chain, step_.gaps[g], release.At(q), reserve.At(q), in.At(q), out.At(q));
      a.offset = p * part_;
      a.bytes = std::min(part_, whole - a.offset);
      if (!draft_->aways.Append(a)) return false;
    }
    return true;
  }

  Away WhenAway(const FluidChain& chain, const FluidGap& gap, uint32_t release, uint32_t reserve,
                uint32_t in_slot, uint32_t out_slot) const {
    Away a;
    a.buffer = chain.buffer;
    a.use = gap.use;
    a.release = step_.OpAt(release) - gap.base;
    a.reserve = step_.OpAt(std::max(reserve, release + 1)) - gap.base;
    a.ready = step_.OpAt(gap.next) - gap.base;
    // A copy in an operation's slot has to be in the queue before that operation.
    const auto boundary = static_cast<int32_t>(step_.OpAt(out_slot / 3));
    a.issue = static_cast<int32_t>(a.release);
    if (!chain.is_clean) a.issue = std::min(a.issue, boundary - static_cast<int32_t>(gap.base));
    a.order = out_slot % 3;
    a.fetch = step_.OpAt((in_slot - 1) / 3) - gap.base;
    a.fetch_order = (in_slot - 1) % 3;
    a.back = step_.OpAt((in_slot + 1) / 3) - gap.base;
    return a;
  }

  const Timeline& timeline_;
  const Bytes chunk_;
  const FluidStep& step_;
  const FluidMix& mix_;
  Draft* draft_;
  Bytes part_ = 0;
};

}  // namespace

bool RoundMix(const Timeline& timeline, Bytes chunk, const FluidStep& step, const FluidMix& mix,
              Draft* draft) {
  return Rounding(timeline, chunk, step, mix, draft).Run();
}

}  // namespace tidemark::core::planner
