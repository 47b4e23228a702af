#include "core/planner/fluid_prices.h"

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
      ascent_(machine, step.demand, 3 * n_, OpsPerStay(step)) {
  out_unit_ = kNanosecondsPerSecond / machine.out_rate;
  in_unit_ = kNanosecondsPerSecond / machine.in_rate;
  away_unit_ = (out_unit_ + in_unit_) / OpsPerStay(step);
}

bool FluidPrices::Allocate() {
  size_t most_gaps = 0, most_stays = 0;
  for (const FluidClass& alike : step_.classes) {
    const FluidChain& chain = step_.chains[alike.chain];
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
  return ascent_.Allocate() && away_.Resize(ops) && leaves_.Resize(ops) && out_.Resize(3 * ops) &&
         in_.Resize(3 * ops) && cheap_out_.Resize(ops) && cheap_in_.Resize(ops) &&
         stay_.Resize(most_stays) && release_.Resize(most_gaps) && gain_.Resize(most_gaps) &&
         now_.Resize(step_.gaps.size()) && copied_.Resize(step_.classes.size()) && AllocateShares();
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
  Share(1);
  double part = kFirstStep, most = kFirstWeight, checked = best;
  uint32_t idle = 0;
  for (uint32_t i = 1; i < steps; ++i) {
    if (!ascent_.StepFromCentre(part * (target - best))) break;
    const double value = Evaluate();
    const bool points_on = ascent_.PointsOn();
    Share(ascent_.MixSlopes(most));
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

// What is done at the prices now gets so much weight in the mean.
void FluidPrices::Share(double weight) {
  constexpr double kTooSmall = 1e-100;
  scale_ *= 1 - weight;
  if (scale_ < kTooSmall) {
    for (double& share : shares_) share = share * scale_;
    scale_ = 1;
  }
  const double share = weight / scale_;
  const auto add = [&](const FluidShares& of, uint32_t when) {
    shares_[of.at + when - of.first] += share;
  };
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    const FluidChain& chain = step_.chains[step_.classes[c].chain];
    if (copied_[c] != kNone) add(out_shares_[c], copied_[c]);
    for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
      if (now_[g].release == kNone) continue;
      add(gap_shares_[g].release, now_[g].release);
      add(gap_shares_[g].reserve, now_[g].reserve);
      add(gap_shares_[g].in, now_[g].in_slot);
    }
  }
}

bool FluidPrices::AllocateShares() {
  uint32_t size = 0;
  const auto take = [&](uint32_t first, uint32_t count) {
    size += count;
    return FluidShares{first, count, size - count};
  };
  if (!gap_shares_.Resize(step_.gaps.size()) || !out_shares_.Resize(step_.classes.size())) {
    return false;
  }
  for (uint32_t c = 0; c < step_.classes.size(); ++c) {
    const FluidChain& chain = step_.chains[step_.classes[c].chain];
    for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
      const uint32_t first = step_.gaps[g].first, length = step_.gaps[g].next - first;
      gap_shares_[g] = {take(first, length), take(first + 1, length),
                        take(3 * first + 4, 3 * length)};
    }
    const uint32_t last = step_.gaps[chain.first_gap + chain.gap_count - 1].next;
    out_shares_[c] = take(3 * chain.from, 3 * (last - chain.from));
  }
  return shares_.Resize(size, 0);
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
  lowest_out_ = *std::min_element(out_.begin(), out_.begin() + slots);
  for (uint32_t k = 0; k < away_.size(); ++k) {
    const uint32_t before = k == 0 ? slots : 3 * k;
    cheap_out_[k] = {out_[3 * k], 3 * k};
    for (const uint32_t back : {1U, 2U}) {
      if (out_[before - back] < cheap_out_[k].price) {
        cheap_out_[k] = {out_[before - back], 3 * k - back};
      }
    }
    cheap_in_[k] = {in_[3 * k + 1], 3 * k + 1};
    const uint32_t after = k + 1 == away_.size() ? 3 * k + 3 - slots : 3 * k + 3;
    if (in_[3 * k + 2] < cheap_in_[k].price) cheap_in_[k] = {in_[3 * k + 2], 3 * k + 2};
    if (in_[after] < cheap_in_[k].price) cheap_in_[k] = {in_[after], 3 * k + 3};
  }
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
    value += away_[i] * step_.demand[i];
    ascent_.away_slope(i) = (step_.demand[i] - leaves_[i] - leaves_[i + n_]) * away_unit_;
  }
  for (uint32_t i = 0; i < n_; ++i) value -= ascent_.SellTime(3 * i + 2, step_.duration[i]);
  return value;
}

// The most that one byte of a gap gains by being away, and from which release on.
double FluidPrices::Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release) {
  double best = 0;
  *release = kNone;
  // The last boundary is followed by one wait only.
  const uint32_t last = 3 * gap.next + 1;
  Stay longer = {-in_[last], gap.next, last};
  for (uint32_t r = gap.next; r-- > gap.first;) {
    if (r + 1 < gap.next && -cheap_in_[r + 1].price > longer.gain) {
      longer = {-cheap_in_[r + 1].price, r + 1, cheap_in_[r + 1].slot};
    }
    longer.gain += away_[r];
    stay_[first_stay + r - gap.first] = longer;
    if (longer.gain <= best) continue;
    best = longer.gain;
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
  uint32_t boundary = chain.from;
  Cheapest copy = {out_[3 * boundary], 3 * boundary};
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count && later > 0; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    later -= gain_[g];
    for (uint32_t r = gap.first; r < gap.next; ++r) {
      // The longer the bytes are away, the more it gains.
      if (stay_[stays + r - gap.first].gain + later - lowest_out_ <= best) break;
      while (boundary < r) {
        if (cheap_out_[++boundary].price < copy.price) copy = cheap_out_[boundary];
      }
      const double gain = stay_[stays + r - gap.first].gain + later - copy.price;
      if (gain <= best) continue;
      best = gain;
      *first = g;
      release_[g] = r;
      *copy_slot = copy.slot;
    }
    stays += gap.next - gap.first;
  }
  return best;
}

// What the chains of a class gain, in ns.
double FluidPrices::Chain(uint32_t c) {
  const FluidClass& alike = step_.classes[c];
  const FluidChain& chain = step_.chains[alike.chain];
  double gain = 0;
  uint32_t stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    gain_[g] = Gap(gap, stays, &release_[g]);
    stays += gap.next - gap.first;
    gain += gain_[g];
  }
  uint32_t first = 0, copy_slot = kNone;
  if (!chain.is_clean) {
    gain = LeaveFirst(chain, gain, &first, &copy_slot);
    if (first < chain.gap_count) ascent_.out_slope(copy_slot) += alike.bytes * out_unit_;
  }
  stays = 0;
  for (uint32_t g = 0; g < chain.gap_count; ++g) {
    const FluidGap& gap = step_.gaps[chain.first_gap + g];
    Choice choice = {kNone, kNone, kNone};
    if (g >= first && release_[g] != kNone) {
      const Stay& stay = stay_[stays + release_[g] - gap.first];
      leaves_[release_[g]] += alike.bytes;
      leaves_[stay.reserve] -= alike.bytes;
      ascent_.in_slope(stay.in_slot) += alike.bytes * in_unit_;
      choice = {release_[g], stay.reserve, stay.in_slot};
    }
    now_[chain.first_gap + g] = choice;
    stays += gap.next - gap.first;
  }
  copied_[c] = copy_slot;
  return gain * alike.bytes;
}

}  // namespace tidemark::core::planner
