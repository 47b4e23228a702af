#include "core/bounds/dual_bound.h"

#include <algorithm>

namespace tidemark::core {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// A byte's stay is paid for by several moments, its ways by one slot each: steps of the prices are
// scaled accordingly.
constexpr double kMomentsPerStay = 4;
// Moments of gaps looked at, in all steps together; the second with many moments.
constexpr size_t kMostWork = 6'000'000;
constexpr size_t kMostWorkOfMany = 12'000'000;
constexpr size_t kFewestSteps = 100;
constexpr size_t kMostSteps = 3000;
constexpr int kPatience = 150;       // steps without progress before the target comes closer;
constexpr int kPatienceOfMany = 40;  // with many moments
// How far above the best value a step first aims: a share of the known stall or, if that is more,
// of a twentieth of the step's time; the smaller where there are prices to start from.
constexpr double kFirstRise = 0.5;
constexpr double kRiseFromPrices = 0.25;
constexpr double kRiseOfMany = 0.05;
constexpr double kSmallestRise = 1e-4;

}  // namespace

DualBound::DualBound(const CoarseStep& step, const Machine& machine)
    : step_(step),
      moments_(step.moments),
      slots_(2 * step.moments),
      // At this price every byte leaves that can, whatever the links charge: more says no more.
      ascent_(machine, step.demand, slots_, kMomentsPerStay) {
  out_unit_ = kNanosecondsPerSecond / machine.out_rate;
  in_unit_ = kNanosecondsPerSecond / machine.in_rate;
  away_unit_ = (out_unit_ + in_unit_) / kMomentsPerStay;
}

bool DualBound::Allocate() {
  uint32_t most_gaps = 0;
  uint32_t most_stays = 0;
  uint32_t last = moments_;
  for (const CoarseChain& chain : step_.chains) {
    uint32_t stays = 0;
    for (uint32_t g = 0; g < chain.gap_count; ++g) {
      const CoarseGap& gap = step_.gaps[chain.first_gap + g];
      stays += gap.last - gap.first + 1;
      last = std::max(last, gap.last);
    }
    most_gaps = std::max(most_gaps, chain.gap_count);
    most_stays = std::max(most_stays, stays);
  }
  return ascent_.Allocate() && best_price_.Resize(ascent_.prices().size(), 0) &&
         away_.Resize(last + 1) && cheap_out_.Resize(last + 1) && cheap_in_.Resize(last + 1) &&
         stay_.Resize(most_stays) && entry_.Resize(most_gaps) && gain_.Resize(most_gaps);
}

// Moments keep their prices, new ones get none; a slot gets the price of the one it is a part of.
void DualBound::StartFrom(const Prices& coarser) {
  const auto old_moments = static_cast<uint32_t>(coarser.ops.size());
  if (old_moments == 0) return;
  const double* old_out = &coarser.price[old_moments];
  const double* old_in = old_out + 2 * old_moments;
  uint32_t old = 0;  // the first old moment at or behind the new one
  for (uint32_t k = 0; k < moments_; ++k) {
    while (old < old_moments && coarser.ops[old] < step_.ops[k]) ++old;
    const bool same = old < old_moments && coarser.ops[old] == step_.ops[k];
    if (same) ascent_.away(k) = coarser.price[old];
    for (const uint32_t part : {0U, 1U}) {
      const uint32_t slot = 2 * (old % old_moments) + (same ? part : 0);
      ascent_.out(2 * k + part) = old_out[slot];
      ascent_.in(2 * k + part) = old_in[slot];
    }
  }
  ascent_.Project();
}

bool DualBound::Run(double known_stall, Prices* prices) {
  if (!Allocate()) return false;
  const bool has_prices = !prices->ops.empty();
  StartFrom(*prices);
  double time = 0;
  for (const double duration : step_.duration) time += duration;
  const size_t size = step_.Size();
  if (size == 0) return true;
  const bool is_many = moments_ > kFewMoments;
  const size_t work = is_many ? kMostWorkOfMany : kMostWork;
  const size_t steps = std::clamp(work / size, kFewestSteps, kMostSteps);
  const int patience = is_many ? kPatienceOfMany : kPatience;
  const double part = is_many ? kRiseOfMany : has_prices ? kRiseFromPrices : kFirstRise;
  double rise = std::max(known_stall, time / 20) * part;
  const double smallest = rise * kSmallestRise;
  best_ = 0;
  int idle = 0;
  for (size_t i = 0; i < steps && rise > smallest; ++i) {
    const double value = Evaluate();
    const bool aims_at_known = !has_prices && i < steps / 4;
    const double target = std::max(best_, aims_at_known ? known_stall : 0) + rise;
    if (value > best_) {
      idle = value > best_ + rise / 100 ? 0 : idle + 1;
      best_ = value;
      std::copy(ascent_.prices().begin(), ascent_.prices().end(), best_price_.begin());
    } else {
      ++idle;
    }
    if (idle > patience) {
      rise /= 2;
      idle = 0;
    }
    ascent_.Ascend(target - value);
  }
  return prices->ops.CopyFrom(step_.ops) && prices->price.CopyFrom(best_price_);
}

// All that is looked up gap by gap.
void DualBound::SpreadPrices() {
  for (uint32_t k = 0; k < away_.size(); ++k) {
    if (k >= moments_) {
      const uint32_t back = 2 * moments_;
      away_[k] = away_[k - moments_];
      cheap_out_[k] = {cheap_out_[k - moments_].price, cheap_out_[k - moments_].slot + back};
      cheap_in_[k] = {cheap_in_[k - moments_].price, cheap_in_[k - moments_].slot + back};
      continue;
    }
    away_[k] = ascent_.away(k) * away_unit_;
    const uint32_t before = k == 0 ? slots_ - 1 : 2 * k - 1;
    const double out = OutPrice(2 * k), out_before = OutPrice(before);
    cheap_out_[k] = out < out_before ? Cheap{out, 2 * k} : Cheap{out_before, 2 * k - 1};
    const double in = InPrice(2 * k + 2), in_behind = InPrice(2 * k + 3);
    cheap_in_[k] = in_behind < in ? Cheap{in_behind, 2 * k + 3} : Cheap{in, 2 * k + 2};
  }
}

// The bound at the current prices; their slopes become its subgradient there.
double DualBound::Evaluate() {
  SpreadPrices();
  ascent_.ClearSlopes();
  double value = 0;
  for (uint32_t k = 0; k < moments_; ++k) {
    value += away_[k] * step_.demand[k];
    ascent_.away_slope(k) = step_.demand[k] * away_unit_;
  }
  for (const CoarseChain& chain : step_.chains) value -= Chain(chain) * chain.bytes;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    value -= ascent_.SellTime(slot, step_.duration[slot]);
  }
  return value;
}

// The most that one byte of a gap gains by being away, and from which moment on.
double DualBound::Gap(const CoarseGap& gap, uint32_t first_stay, uint32_t* entry) {
  double best = 0;
  *entry = gap.last + 1;
  for (uint32_t k = gap.last + 1; k-- > gap.first;) {
    Stay& stay = stay_[first_stay + k - gap.first];
    if (k < gap.last) {
      stay = {-cheap_in_[k].price, k, cheap_in_[k].slot};
      const Stay& longer = *(&stay + 1);
      if (longer.gain >= stay.gain) stay = longer;
    } else {
      stay = {-InPrice(2 * k + 2), k, 2 * k + 2};
    }
    stay.gain += away_[k];
    if (stay.gain <= best) continue;
    best = stay.gain;
    *entry = k;
  }
  return best;
}

void DualBound::Book(const CoarseGap& gap, uint32_t first_stay, uint32_t entry, double bytes) {
  if (entry > gap.last) return;
  const Stay& stay = stay_[first_stay + entry - gap.first];
  for (uint32_t k = entry, at = entry % moments_; k <= stay.last; ++k) {
    ascent_.away_slope(at) -= bytes * away_unit_;
    if (++at == moments_) at = 0;
  }
  ascent_.in_slope(stay.in_slot) += bytes * in_unit_;
}

// The most that one byte of a chain gains: it leaves in some gaps, and is copied out once, before
// the first of them.
double DualBound::Chain(const CoarseChain& chain) {
  double later = 0;
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const CoarseGap& gap = step_.gaps[chain.first_gap + g];
    gain_[g] = Gap(gap, stays, &entry_[g]);
    stays += gap.last - gap.first + 1;
    later += gain_[g];
  }
  double best = chain.from == kNeverDirty ? later : 0;
  uint32_t best_gap = chain.from == kNeverDirty ? 0 : chain.gap_count;
  uint32_t copy_slot = 0;
  if (chain.from != kNeverDirty) {
    uint32_t seen = chain.from;
    Cheap cheapest{OutPrice(2 * seen), 2 * seen};
    stays = 0;
    for (uint32_t g = 0; g < chain.gap_count && later > 0; ++g) {
      const CoarseGap& gap = step_.gaps[chain.first_gap + g];
      later -= gain_[g];
      for (uint32_t k = gap.first; k <= gap.last; ++k) {
        while (seen < k) {
          if (cheap_out_[++seen].price < cheapest.price) cheapest = cheap_out_[seen];
        }
        const double gain = stay_[stays + k - gap.first].gain + later - cheapest.price;
        if (gain <= best) continue;
        best = gain;
        best_gap = g;
        entry_[g] = k;
        copy_slot = cheapest.slot;
      }
      stays += gap.last - gap.first + 1;
    }
    if (best_gap < chain.gap_count) ascent_.out_slope(copy_slot) += chain.bytes * out_unit_;
  }
  stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const CoarseGap& gap = step_.gaps[chain.first_gap + g];
    if (g >= best_gap) Book(gap, stays, entry_[g], chain.bytes);
    stays += gap.last - gap.first + 1;
  }
  return best;
}

}  // namespace tidemark::core
