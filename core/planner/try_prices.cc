// Drafts by prices: of the step as it is, or in as many stretches as there is time for and in
// somewhat fewer; then in few.

#include "core/planner/price_draft.h"
#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

// Stretches of drafts by prices, where safepoints are at least this share of what is lost.
constexpr uint32_t kFewStretches[] = {30, 20, 12, 8, 5};
constexpr double kManyRemaps = 0.25;
// Operations; with more of them such a draft blurs too much.
constexpr uint32_t kLongestStretch = 64;
constexpr uint32_t kFewer = 14;           // a second draft has this part fewer stretches
constexpr Nanoseconds kLittleLost = 200;  // part of the ideal time for which no such draft is made

}  // namespace

Found Search::TryPrices() {
  if (!has_plan_ || best_.step_time - timeline_.ideal() < timeline_.ideal() / kLittleLost) {
    return Found::kNothing;
  }
  uint64_t work = kPriceWork;
  const uint32_t most = MostStretches(timeline_);
  if (most != 0 && TryPrices(most, work) == Found::kNoMemory) return Found::kNoMemory;
  // Where stretches are of several operations, it matters with which of them they begin.
  if (most != 0 && most < timeline_.ops()) {
    work += kPriceWork;
    if (TryPrices(most - most / kFewer, work) == Found::kNoMemory) return Found::kNoMemory;
  }
  if (machine_.safepoint == 0) return Found::kPlan;
  // Where safepoints are much of what is lost, fewer boundaries are better.
  for (const uint32_t stretches : kFewStretches) {
    const auto lost = static_cast<double>(best_.step_time - timeline_.ideal());
    const double remaps = static_cast<double>(machine_.safepoint) * best_.safepoints;
    if (remaps < kManyRemaps * lost || stretches * kLongestStretch < timeline_.ops()) break;
    if (TryPrices(stretches, work) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

Found Search::TryPrices(uint32_t stretches, uint64_t most_work) {
  if (!has_plan_ || IsDone()) return Found::kNothing;
  const auto stall = static_cast<double>(best_.step_time - timeline_.ideal());
  uint64_t left = most_work - spent_on_prices_;
  const DraftResult drafted = DraftByPrices(timeline_, machine_, stall, stretches, &left, &draft_);
  spent_on_prices_ = most_work - left;
  if (drafted == DraftResult::kNoMemory) return Found::kNoMemory;
  if (drafted == DraftResult::kCannot) return Found::kNothing;
  trial_.recipe = best_.recipe;
  return TryDraft();
}

}  // namespace tidemark::core::planner
