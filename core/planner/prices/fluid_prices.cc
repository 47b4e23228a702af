#include "core/planner/prices/fluid_prices.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;
// Where the links never rest, their time is as dear as it can be; most prices start near there.
constexpr double kFirstLinkPrice = 1;
constexpr double kFirstAwayPrice = 0.5;
// Of the volume algorithm: what part of the way to the target a step goes, and how much the newest
// slopes weigh.
constexpr double kFirstStep = 0.1;
constexpr double kLeastStep = 0.005;
constexpr double kMostStep = 2;
constexpr double kLonger = 1.1;
constexpr double kShorter = 0.66;
constexpr uint32_t kPatience = 20;  // steps without a better centre until they get shorter
constexpr double kFirstWeight = 0.1;
constexpr double kLastWeight = 0.003;
constexpr uint32_t kChecks = 12;  // times that the newest comes to weigh half, if the value has ...
constexpr double kGood = 1.01;    // ... not risen so much since the last one
constexpr double kClose = 0.95;   // a value above this part of the target moves it up again
constexpr double kBeyond = 1.05;

// A byte's stay is paid for by some operations: the unit of prices is scaled accordingly. By less
// than their mean number, since where nearly all must be away, one operation pays for most of it.
constexpr double kFewerOps = 20;
double OpsPerStay(const FluidStep& step) {
  double gaps = 0;
  for (const FluidClass& alike : step.classes) gaps += step.chains[alike.chain].gap_count;
  return std::max(1.0, static_cast<double>(step.size) / gaps / kFewerOps);
}

}  // namespace

FluidPrices::FluidPrices(const FluidStep& step, const Machine& machine)
    : step_(step),
      n_(static_cast<uint32_t>(step.demand.size())),
      ascent_(machine, step.demand, 3 * n_, OpsPerStay(step)),
      finder_(step) {
  out_unit_ = kNanosecondsPerSecond / machine.out_rate;
  in_unit_ = kNanosecondsPerSecond / machine.in_rate;
  away_unit_ = (out_unit_ + in_unit_) / OpsPerStay(step);
}

bool FluidPrices::Allocate() {
  return ascent_.Allocate() && finder_.Allocate() && leaves_.Resize(2 * size_t{n_} + 1);
}

void FluidPrices::Start() {
  for (uint32_t k = 0; k < n_; ++k) ascent_.away(k) = kFirstAwayPrice;
  for (uint32_t k = 0; k < ascent_.slots(); ++k) ascent_.out(k) = ascent_.in(k) = kFirstLinkPrice;
  ascent_.Project();
}

bool FluidPrices::Run(uint32_t steps, double stall) {
  if (!Allocate()) return false;
  Start();
  double best = Evaluate();
  double target = best > kClose * stall ? kBeyond * best : stall;
  ascent_.SetCentre();
  ascent_.StartMean();
  double part = kFirstStep, most = kFirstWeight, checked = best;
  uint32_t idle = 0;
  for (uint32_t i = 1; i < steps; ++i) {
    if (!ascent_.StepFromCentre(part * (target - best))) break;
    const double value = Evaluate();
    const bool points_on = ascent_.PointsOn();
    ascent_.MixSlopes(most);
    if (value > best) {
      best = value;
      ascent_.SetCentre();
      idle = 0;
      if (points_on) part = std::min(part * kLonger, kMostStep);
    } else if (++idle == kPatience) {
      part = std::max(part * kShorter, kLeastStep);
      idle = 0;
    }
    if (best > kClose * target) target = kBeyond * best;
    if (i % (steps / kChecks + 1) != 0) continue;
    if (best < checked * kGood) most = std::max(most / 2, kLastWeight);
    checked = best;
  }
  ascent_.ReturnToCentre();
  return true;
}

void FluidPrices::SpreadPrices() {
  for (uint32_t k = 0; k < n_; ++k) finder_.SetAway(k, away_price(k));
  double lowest = out_price(0);
  for (uint32_t slot = 0; slot < ascent_.slots(); ++slot) {
    finder_.SetLinks(slot, out_price(slot), in_price(slot));
    lowest = std::min(lowest, out_price(slot));
  }
  finder_.SetLowestOut(lowest);
  for (uint32_t k = 0; k < n_; ++k) finder_.Compare(k);
}

// The value of the prices: ns of stall, at least while they are the best ones.
double FluidPrices::Evaluate() {
  SpreadPrices();
  ascent_.ClearSlopes();
  std::fill(leaves_.begin(), leaves_.end(), 0);
  double value = 0;
  for (uint32_t c = 0; c < step_.classes.size(); ++c) value -= Chain(c);
  for (size_t k = 1; k < leaves_.size(); ++k) leaves_[k] += leaves_[k - 1];
  for (uint32_t i = 0; i < n_; ++i) {
    value += away_price(i) * step_.demand[i];
    ascent_.away_slope(i) = (step_.demand[i] - leaves_[i] - leaves_[i + n_]) * away_unit_;
  }
  for (uint32_t i = 0; i < n_; ++i) value -= ascent_.SellTime(3 * i + 2, step_.duration[i]);
  return value;
}

// What the chains of a class gain, in ns.
double FluidPrices::Chain(uint32_t c) {
  const FluidClass& alike = step_.classes[c];
  const FluidChain& chain = step_.chains[alike.chain];
  const double gain = finder_.Find(c);
  if (finder_.out_slot() != kNone) {
    ascent_.out_slope(finder_.out_slot()) += alike.bytes * out_unit_;
  }
  for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
    const FluidStay& stay = finder_.stay(g);
    if (!stay.is_away()) continue;
    leaves_[stay.release] += alike.bytes;
    leaves_[stay.reserve] -= alike.bytes;
    ascent_.in_slope(stay.in_slot) += alike.bytes * in_unit_;
  }
  return gain * alike.bytes;
}

}  // namespace tidemark::core::planner
