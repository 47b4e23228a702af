// The parts of the best plan are changed at random, the same way each time. Small steps get
// thousands of trials, by threshold accepting (Dueck and Scheuer 1990): from draft to draft, slower
// ones too as long as the loss is small, less and less of it, in rounds until some in a row find
// nothing. Large steps get some tens, of bold changes.

#include <algorithm>

#include "core/planner/change_draft.h"
#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

constexpr size_t kSmall = 400;             // operations and moves
constexpr double kRoundWork = 65'000;      // operations and moves walked through in one round ...
constexpr double kWorkOfSeen = 0.4;        // ... a part of them for drafts that were seen before
constexpr uint64_t kSeekWork = 20'000;     // the same while there is no plan at all
constexpr uint64_t kChangeWorkOfPart = 5;  // in units of Search::kMostWork
constexpr uint32_t kPatience = 6;          // rounds without a gain; each starts from the best plan
// A trial may be slower than the one before by up to this share of what the best plan takes beyond
// the bound, at a round's start.
constexpr double kHeat = 0.03;

}  // namespace

// For small steps whose host is so short that no recipe's copies fit.
Found Search::TryAtRandom() {
  if (has_plan_ || timeline_.ops() > kSmall) return Found::kNothing;
  const auto trials = static_cast<uint32_t>(kSeekWork / (timeline_.ops() + timeline_.uses()));
  if (!ListOpenWindows()) return Found::kNoMemory;
  Dice dice;
  DraftChanger changer(timeline_, machine_, windows_, /*is_bold=*/false, &dice);
  for (uint32_t t = 0; t < trials && !has_plan_ && !IsSpent(kSweepWork); ++t) {
    draft_.aways.Clear();
    const DraftResult covered = CoverDemand(timeline_, machine_, &draft_, {&dice, kNone});
    if (covered == DraftResult::kNoMemory) return Found::kNoMemory;
    if (covered == DraftResult::kCannot) return Found::kNothing;
    if (!changer.Trim(&draft_)) return Found::kNoMemory;
    trial_.recipe = kByDemand;
    if (TryDraft() == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

bool Search::IsSmall(const Plan& plan) const {
  return timeline_.ops() + plan.moves.size() <= kSmall;
}

Found Search::Polish() {
  if (!has_plan_ || IsDone() || best_.moves.empty()) return Found::kNothing;
  if (!ListOpenWindows()) return Found::kNoMemory;
  if (windows_.empty()) return Found::kPlan;
  return IsSmall(best_) ? PolishLong() : PolishBoldly();
}

Found Search::PolishLong() {
  Dice dice;
  DraftChanger changer(timeline_, machine_, windows_, /*is_bold=*/false, &dice);
  for (uint32_t in_vain = 0; in_vain < kPatience && !IsDone() && !IsSpent(kMostWorkOfSmall);) {
    const Nanoseconds before = best_.step_time;
    if (PolishOneRound(&changer, &dice) == Found::kNoMemory) return Found::kNoMemory;
    in_vain = best_.step_time < before ? 0 : in_vain + 1;
  }
  return Found::kPlan;
}

Found Search::PolishOneRound(DraftChanger* changer, Dice* dice) {
  if (!ReadMoves(timeline_, machine_, best_, &current_) || !seen_.Start()) return Found::kNoMemory;
  auto here = static_cast<double>(best_.step_time);  // of the plan that current_ is of
  double done = 0;
  while (done < kRoundWork && !IsDone() && !IsSpent(kMostWorkOfSmall)) {
    const double left = 1 - done / kRoundWork;
    const double heat = kHeat * left * static_cast<double>(best_.step_time - least_time_);
    const double most = here + heat * dice->Below(1000) / 1000;
    const Found found = TryChange(most, changer, dice);
    if (found == Found::kNoMemory) return found;
    const auto work = static_cast<double>(timeline_.ops() + draft_.aways.size());
    done += was_seen_ ? kWorkOfSeen * work : work;
    if (found == Found::kNothing || static_cast<double>(trial_.step_time) > most) continue;
    here = static_cast<double>(trial_.step_time);
    if (!current_.aways.CopyFrom(draft_.aways)) return Found::kNoMemory;
    if (KeepIfBetter() == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

// Values a changed copy of current_, in draft_ and trial_. kNothing also if it was seen before.
Found Search::TryChange(double most, DraftChanger* changer, Dice* dice) {
  CoverChoice choice;
  spent_ += kChangeWorkOfPart * current_.aways.size();
  was_seen_ = false;
  if (!draft_.aways.CopyFrom(current_.aways)) return Found::kNoMemory;
  if (!changer->Change(&draft_, &choice)) return Found::kNoMemory;
  trial_.recipe = best_.recipe;
  const DraftResult covered = CoverDemand(timeline_, machine_, &draft_, choice);
  Charge(&draft_);
  if (covered == DraftResult::kNoMemory) return Found::kNoMemory;
  if (covered == DraftResult::kCannot) return Found::kNothing;
  if (dice->Below(3) != 0 && !changer->Trim(&draft_)) return Found::kNoMemory;
  was_seen_ = seen_.Note(draft_);
  return was_seen_ ? Found::kNothing : ValueDraft(most + 1);
}

Found Search::PolishBoldly() {
  Dice dice;
  DraftChanger changer(timeline_, machine_, windows_, /*is_bold=*/true, &dice);
  improved_ = true;
  const uint64_t most = TrustsPrices() ? kMostWorkWithPrices : kMostWork;
  while (!IsDone() && !IsSpent(most)) {
    if (improved_) {
      if (!ReadMoves(timeline_, machine_, best_, &current_)) return Found::kNoMemory;
      for (Away& a : current_.aways) a.ready = timeline_.use(a.use).next;
    }
    if (current_.aways.empty()) break;
    CoverChoice choice;
    if (!draft_.aways.CopyFrom(current_.aways)) return Found::kNoMemory;
    if (!changer.Change(&draft_, &choice)) return Found::kNoMemory;
    trial_.recipe = best_.recipe;
    if (TryDraft(choice) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

}  // namespace tidemark::core::planner
