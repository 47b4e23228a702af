// Drafts by prices: of the step as it is, or in as many stretches as there is work for; then in
// few.

#include "core/planner/prices/price_draft.h"
#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

// Stretches of drafts by prices, where safepoints are at least this share of what is lost.
constexpr uint32_t kFewStretches[] = {25, 16, 11, 7, 5, 4};
constexpr double kManyRemaps = 0.25;
// Operations; with more of them such a draft blurs too much.
constexpr uint32_t kLongestStretch = 64;
constexpr Nanoseconds kLittleLost = 200;  // part of the ideal time for which no such draft is made

}  // namespace

Found Search::TryPrices() {
  if (!has_plan_ || best_.step_time - timeline_.ideal() < timeline_.ideal() / kLittleLost) {
    return Found::kNothing;
  }
  // Sweeps do well in long steps, but not where most goes round.
  const uint32_t stretches = GoesRound() ? kFinest : timeline_.ops();
  if (TryPrices(stretches) == Found::kNoMemory) return Found::kNoMemory;
  if (machine_.safepoint == 0) return Found::kPlan;
  // Where safepoints are much of what is lost, fewer boundaries are better.
  for (const uint32_t few : kFewStretches) {
    const auto lost = static_cast<double>(best_.step_time - timeline_.ideal());
    const double remaps = static_cast<double>(machine_.safepoint) * best_.safepoints;
    if (remaps < kManyRemaps * lost || few * kLongestStretch < timeline_.ops()) break;
    if (TryPrices(few) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

Found Search::TryPrices(uint32_t stretches) {
  if (!has_plan_ || IsDone()) return Found::kNothing;
  const auto stall = static_cast<double>(best_.step_time - timeline_.ideal());
  uint64_t left = kPriceWork - spent_on_prices_;
  PriceDrafts drafts(timeline_, machine_, stall, stretches, &left);
  // Where one does not better the plan, the next one, which is a little better, hardly will.
  improved_ = true;
  while (improved_) {
    const DraftResult drafted = drafts.Next(&draft_);
    spent_on_prices_ = kPriceWork - left;
    if (drafted == DraftResult::kNoMemory) return Found::kNoMemory;
    if (drafted == DraftResult::kCannot) break;
    trial_.recipe = best_.recipe;
    if (TryDraft() == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

}  // namespace tidemark::core::planner
