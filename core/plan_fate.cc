// The part of core/placement_plan.h that says what becomes of live blocks by the plan. Threads:
// none of its own.

#include "core/placement_plan.h"

namespace tidemark::core {

uint32_t PlacementPlan::IndexOf(RequestNumber asked) const {
  const uint32_t ago = number() - asked;
  if (asked == 0 || !in_step_ || ago >= plan_.size()) return kNone;
  return PlannedIndex(asked);
}

void PlacementPlan::Foresee(RequestNumber asked) {
  Entry& entry = log_[asked % kLog];
  const uint32_t index = IndexOf(asked);
  if (entry.number == asked && entry.life == 0 && index != kNone) entry.life = plan_[index].life;
}

PlacementPlan::Fate PlacementPlan::FateOf(RequestNumber asked) const {
  const uint32_t ago = number() - asked;
  if (asked == 0 || !in_step_ || ago >= 2 * period_length_) return Fate::kStays;
  const auto period = static_cast<uint32_t>(plan_.size());
  const Recurring& request = Planned(asked);
  if (request.life == 0) return Fate::kIsMadeElsewhere;
  return ago < std::max(period, request.life) ? Fate::kIsPlaced : Fate::kStays;
}

uint32_t PlacementPlan::EndOf(RequestNumber asked) const {
  const uint32_t ago = number() - asked;
  if (asked == 0 || !in_step_ || ago == 0 || ago >= 2 * period_length_) return kNever;
  const uint32_t life = Planned(asked).life;
  return life > ago ? life - ago : kNever;
}

}  // namespace tidemark::core
