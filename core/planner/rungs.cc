// What weaker machines would find is tried as well, for small steps.

#include <algorithm>

#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

constexpr Bytes kDeviceRungs = 16;  // from the largest floor to the live peak
constexpr Bytes kNearRungs = 4;     // of them, below the budget
constexpr Bytes kHostRungs = 8;     // from nothing to the live peak
constexpr uint32_t kRateRungs = 4;  // of each link, from the rate down
constexpr uint32_t kFew = 4;        // recipes for a budget
constexpr uint32_t kFewer = 2;      // recipes for a pair of rates
constexpr uint64_t kTrials =
    (kNearRungs + kHostRungs) * kFew + kRateRungs * kRateRungs * uint64_t{kFewer};
constexpr uint64_t kRungWork = 80'000;  // operations, uses and pieces walked through in all trials
constexpr double kSquareRoot2 = 1.4142135623730951;

// The largest power of the square root of 2 up to `rate`, above 0. By hand, since the preloaded
// library must not need libm.
double SharedRate(double rate) {
  double power = 1;
  while (power * 2 <= rate) power *= 2;
  while (power > rate) power /= 2;
  return power * kSquareRoot2 <= rate ? power * kSquareRoot2 : power;
}

}  // namespace

// Sweeps of many pieces are left out where they would cost more than all others together.
Found Search::TryFew(uint32_t recipes) {
  const uint64_t work = timeline_.ops() + timeline_.uses() + most_pieces_;
  const bool is_quick_enough = kTrials * work <= kRungWork;
  for (uint32_t recipe = 0; recipe < recipes && !IsDone(); ++recipe) {
    if (!is_quick_enough && !IsQuick(recipe)) continue;
    if (TryRecipe(recipe) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

Found Search::TryRungs() {
  if (kTrials * (timeline_.ops() + timeline_.uses() + sweep_.pieces()) > kRungWork) {
    return Found::kPlan;
  }
  const Machine own = machine_;
  Found found = TryDeviceRungs();
  machine_ = own;
  if (found == Found::kPlan) found = TryHostRungs();
  machine_ = own;
  if (found == Found::kPlan) found = TryRateRungs();
  out_speed_ = in_speed_ = 1;
  return found;
}

Found Search::TryDeviceRungs() {
  const Bytes device = machine_.device_budget, floor = timeline_.largest_floor();
  Bytes tried = 0;
  for (Bytes rung = kDeviceRungs; rung-- > 0 && tried < kNearRungs;) {
    machine_.device_budget = floor + (timeline_.peak() - floor) / kDeviceRungs * rung;
    if (machine_.device_budget >= device) continue;
    ++tried;
    if (TryFew(kFew) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

Found Search::TryHostRungs() {
  const Bytes host = machine_.host_budget;
  for (Bytes rung = kHostRungs; rung-- > 1;) {
    machine_.host_budget = timeline_.peak() / kHostRungs * rung;
    if (machine_.host_budget >= host) continue;
    if (TryFew(kFew) == Found::kNoMemory) return Found::kNoMemory;
  }
  return Found::kPlan;
}

Found Search::TryRateRungs() {
  double out = SharedRate(machine_.out_rate);
  for (uint32_t o = 0; o < kRateRungs; ++o, out /= kSquareRoot2) {
    double in = SharedRate(machine_.in_rate);
    for (uint32_t i = 0; i < kRateRungs; ++i, in /= kSquareRoot2) {
      out_speed_ = out / machine_.out_rate;
      in_speed_ = in / machine_.in_rate;
      if (TryFew(kFewer) == Found::kNoMemory) return Found::kNoMemory;
    }
  }
  return Found::kPlan;
}

}  // namespace tidemark::core::planner
