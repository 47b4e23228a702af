// The best sweep is changed at random, the same way each time: what leaves first, and its options.

#include <algorithm>

#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostTrials = 600;
constexpr uint32_t kPatience = 60;  // trials in a row without a gain
// Operations, uses and pieces walked through in all trials. Where Polish has time to search by
// itself, it only needs a start.
constexpr uint64_t kWork = 60'000;
constexpr uint64_t kWorkBeforePolish = 5'000;

int32_t DrawShift(Dice* dice, uint32_t ops) {
  const auto range = static_cast<int32_t>(ops);
  switch (dice->Below(4)) {
    case 0:
      return 0;
    case 1:
      return -4 * range;  // stays if anything else can leave
    case 2:
      return 4 * range;
    default:
      return static_cast<int32_t>(dice->Below(ops + 1)) - range / 2;
  }
}

void DrawOptions(Dice* dice, SweepOptions* options) {
  constexpr double kSpares[] = {0, 0.5, 0.9, 2};
  if (dice->Below(6) == 0) options->spares = kSpares[dice->Below(4)];
  constexpr double kSpeeds[] = {1, 1, 0.7, 0.4};
  if (dice->Below(6) == 0) options->out_speed = kSpeeds[dice->Below(4)];
  if (dice->Below(6) == 0) options->in_speed = kSpeeds[dice->Below(4)];
  if (dice->Below(6) == 0) options->evicts_to_prefetch = !options->evicts_to_prefetch;
  if (dice->Below(6) == 0) options->spares_yield = !options->spares_yield;
}

// For what goes round; `most` of it can stay.
void DrawRound(double most, Dice* dice, SweepOptions* options) {
  constexpr double kAhead[] = {0, 0.5, 1, 2};
  if (dice->Below(4) == 0) options->stays = most * 0.125 * dice->Below(9);
  if (dice->Below(4) == 0) options->out_ahead = kAhead[dice->Below(4)];
  if (dice->Below(8) == 0) options->in_ahead = kAhead[dice->Below(4)];
}

}  // namespace

bool Search::ListOpenWindows() {
  windows_.Clear();
  for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
    if (!timeline_.CanMove(b)) continue;
    for (uint32_t u = timeline_.first_use(b); u < timeline_.first_use(b + 1); ++u) {
      if (timeline_.IsOpen(timeline_.use(u)) && !windows_.Append({u, b})) return false;
    }
  }
  shifts_.Clear();
  best_shifts_.Clear();
  return shifts_.Resize(timeline_.uses(), 0) && best_shifts_.Resize(timeline_.uses(), 0);
}

Found Search::Improve() {
  if (!has_plan_) return Found::kNothing;
  if (!ListOpenWindows()) return Found::kNoMemory;
  if (windows_.empty()) return Found::kPlan;
  const uint64_t work = timeline_.ops() + timeline_.uses() + best_pieces_;
  const uint64_t all = IsSmall(best_) ? kWorkBeforePolish : kWork;
  const auto trials = static_cast<uint32_t>(std::min<uint64_t>(kMostTrials, all / work));
  Dice dice, round_dice;
  (void)round_dice.Below(2);  // out of step with the other
  const bool goes_round = GoesRound();
  uint32_t gained = 0;
  for (uint32_t t = 0;
       t < trials && t - gained < kPatience && !IsDone() && !IsSpent(MostSweepWork()); ++t) {
    if (!shifts_.CopyFrom(best_shifts_)) return Found::kNoMemory;
    SweepOptions options = best_options_;
    DrawOptions(&dice, &options);
    if (goes_round) DrawRound(PartThatStays(1.5), &round_dice, &options);
    for (uint32_t k = 1 + dice.Below(3); k-- > 0;) {
      const OpenWindow& window = windows_[dice.Below(static_cast<uint32_t>(windows_.size()))];
      shifts_[window.use] = DrawShift(&dice, timeline_.ops());
    }
    options.shifts = &shifts_;
    if (TrySweep(options) == Found::kNoMemory) return Found::kNoMemory;
    if (!improved_) continue;
    gained = t;
    if (!best_shifts_.CopyFrom(shifts_)) return Found::kNoMemory;
  }
  return Found::kPlan;
}

}  // namespace tidemark::core::planner
