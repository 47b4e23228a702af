#include "core/planner/fluid_prices.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// How far above the best value a step aims, as a share of the stall: falling until samples are
// taken, then the same, so that all samples count the same.
constexpr double kFirstRise = 1;
constexpr double kLastRise = 0.1;
constexpr double kSampledPart = 0.4;
// Where the links never rest, their time is as dear as it can be; most prices start near there.
constexpr double kFirstLinkPrice = 1;
constexpr double kFirstAwayPrice = 0.5;

// A byte's stay is paid for by about so many operations: the unit of prices is scaled accordingly.
double OpsPerStay(const FluidStep& step) {
  return static_cast<double>(step.size) / static_cast<double>(step.gaps.size());
}

}  // namespace

FluidPrices::FluidPrices(const FluidStep& step, const Timeline& timeline, const Machine& machine)
    : step_(step),
      timeline_(timeline),
      n_(timeline.ops()),
      ascent_(machine, step.demand, 3 * n_, OpsPerStay(step)) {
  out_unit_ = kNanosecondsPerSecond / machine.out_rate;
  in_unit_ = kNanosecondsPerSecond / machine.in_rate;
  away_unit_ = (out_unit_ + in_unit_) / OpsPerStay(step);
}

bool FluidPrices::Allocate() {
  size_t most_gaps = 0, most_stays = 0;
  for (const FluidChain& chain : step_.chains) {
    size_t stays = 0;
    for (uint32_t g = 0; g < chain.gap_count; ++g) {
      const FluidGap& gap = step_.gaps[chain.first_gap + g];
      stays += gap.next - gap.first;
    }
    most_gaps = std::max<size_t>(most_gaps, chain.gap_count);
    most_stays = std::max(most_stays, stays);
  }
  // The last gap of a chain may end one iteration behind the step's last operation.
  const size_t ops = 2 * size_t{n_} + 1;
  return ascent_.Allocate() && away_.Resize(ops) && out_.Resize(3 * ops) && in_.Resize(3 * ops) &&
         cheap_out_.Resize(ops) && cheap_in_.Resize(ops) && stay_.Resize(most_stays) &&
         release_.Resize(most_gaps) && gain_.Resize(most_gaps) &&
         choices_.Resize(kSamples * step_.gaps.size());
}

void FluidPrices::Start() {
  for (uint32_t k = 0; k < n_; ++k) ascent_.away(k) = kFirstAwayPrice;
  for (uint32_t k = 0; k < ascent_.slots(); ++k) ascent_.out(k) = ascent_.in(k) = kFirstLinkPrice;
  ascent_.Project();
}

bool FluidPrices::Run(uint32_t steps, double stall) {
  if (!Allocate()) return false;
  Start();
  const auto sampled = std::max(static_cast<uint32_t>(steps * kSampledPart), kSamples);
  const uint32_t settle = std::max(steps, sampled) - sampled;
  double best = 0;
  uint32_t samples = 0;
  for (uint32_t i = 0; i < settle + sampled; ++i) {
    const bool is_due = i >= settle && (i - settle) * kSamples >= samples * sampled;
    sample_ = is_due ? &choices_[samples++ * step_.gaps.size()] : nullptr;
    const double value = Evaluate();
    best = std::max(best, value);
    const double behind = settle == 0 ? 1 : std::min(1.0, static_cast<double>(i) / settle);
    const double rise = kFirstRise * kLastRise / (kLastRise + (kFirstRise - kLastRise) * behind);
    ascent_.Ascend(best + stall * rise - value);
  }
  return true;
}

void FluidPrices::SpreadPrices() {
  for (uint32_t k = 0; k < n_; ++k) away_[k] = ascent_.away(k) * away_unit_;
  const uint32_t slots = ascent_.slots();
  for (uint32_t k = 0; k < slots; ++k) {
    out_[k] = ascent_.out(k) * out_unit_;
    in_[k] = ascent_.in(k)*in_unit_;
  }
  for (size_t k = n_; k < away_.size(); ++k) away_[k] = away_[k - n_];
  for (size_t k = slots; k < out_.size(); ++k) {
    out_[k] = out_[k - slots];
    in_[k] = in_[k - slots];
  }
  for (uint32_t k = 1; k < away_.size(); ++k) {
    cheap_out_[k] = Cheapest(out_, 3 * k - 2);
    if (k + 1 < away_.size()) cheap_in_[k] = Cheapest(in_, 3 * k + 1);
  }
}

// Of three slots in a row.
FluidPrices::Cheap FluidPrices::Cheapest(const Array<double>& prices, uint32_t slot) {
  Cheap best{prices[slot], slot};
  for (const uint32_t other : {slot + 1, slot + 2}) {
    if (prices[other] < best.price) best = {prices[other], other};
  }
  return best;
}

// The value of the prices: ns of stall, at least while they are the best ones.
double FluidPrices::Evaluate() {
  SpreadPrices();
  ascent_.ClearSlopes();
  double value = 0;
  for (uint32_t i = 0; i < n_; ++i) {
    value += away_[i] * step_.demand[i];
    ascent_.away_slope(i) = step_.demand[i] * away_unit_;
  }
  for (const FluidChain& chain : step_.chains) value -= Chain(chain);
  for (uint32_t i = 0; i < n_; ++i) value -= ascent_.SellTime(3 * i + 2, step_.duration[i]);
  return value;
}

// The most that one byte of a gap gains by being away, and from which release on.
double FluidPrices::Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release) {
  double best = 0;
  *release = kNone;
  for (uint32_t r = gap.next; r-- > gap.first;) {
    Stay& stay = stay_[first_stay + r - gap.first];
    // In the wait after the boundary, or up to the next one.
    if (r + 1 < gap.next) {
      stay = {-cheap_in_[r + 1].price, r + 1, cheap_in_[r + 1].slot};
      const Stay& longer = *(&stay + 1);
      if (longer.gain >= stay.gain) stay = longer;
    } else {
      const uint32_t slot = 3 * (r + 1) + 1;
      stay = {-in_[slot], r + 1, slot};
    }
    stay.gain += away_[r];
    if (stay.gain <= best) continue;
    best = stay.gain;
    *release = r;
  }
  return best;
}

// Of a chain that is copied out: which gap is the first one to be away in, and when; the gaps
// behind it gain `later`, all together.
double FluidPrices::LeaveFirst(const FluidChain& chain, double later, uint32_t* first,
                               uint32_t* copy_slot) {
  double best = 0;
  *first = chain.gap_count;
  uint32_t seen = chain.from;  // slots up to 3 * seen
  Cheap cheapest{out_[3 * seen], 3 * seen};
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count && later > 0; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    later -= gain_[g];
    for (uint32_t r = gap.first; r < gap.next; ++r) {
      while (seen < r) {
        if (cheap_out_[++seen].price < cheapest.price) cheapest = cheap_out_[seen];
      }
      const double gain = stay_[stays + r - gap.first].gain + later - cheapest.price;
      if (gain <= best) continue;
      best = gain;
      *first = g;
      release_[g] = r;
      *copy_slot = cheapest.slot;
    }
    stays += gap.next - gap.first;
  }
  return best;
}

// What a chain gains, in ns.
double FluidPrices::Chain(const FluidChain& chain) {
  const auto bytes = static_cast<double>(timeline_.buffer(chain.buffer).bytes);
  double gain = 0;
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    gain_[g] = Gap(gap, stays, &release_[g]);
    stays += gap.next - gap.first;
    gain += gain_[g];
  }
  uint32_t first = 0, copy_slot = 0;
  if (!chain.is_clean) {
    gain = LeaveFirst(chain, gain, &first, &copy_slot);
    if (first < chain.gap_count) ascent_.out_slope(copy_slot) += bytes * out_unit_;
  }
  stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    FluidChoice choice;
    if (g >= first && release_[g] != kNone) {
      const Stay& stay = stay_[stays + release_[g] - gap.first];
      Book(stay, release_[g], bytes);
      choice = {release_[g], stay.reserve, copy_slot};
    }
    if (sample_ != nullptr) sample_[chain.first_gap + g] = choice;
    stays += gap.next - gap.first;
  }
  return gain * bytes;
}

void FluidPrices::Book(const Stay& stay, uint32_t release, double bytes) {
  for (uint32_t i = release; i < stay.reserve; ++i) ascent_.away_slope(i) -= bytes * away_unit_;
  ascent_.in_slope(stay.in_slot) += bytes * in_unit_;
}

}  // namespace tidemark::core::planner
