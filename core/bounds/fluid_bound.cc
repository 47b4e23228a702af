#include "core/bounds/fluid_bound.h"

#include <algorithm>

#include "core/planner/prices/fluid_mix.h"
#include "core/planner/prices/fluid_prices.h"
#include "core/planner/prices/fluid_step.h"

namespace tidemark::core {
namespace {

using planner::FluidChain;
using planner::FluidGap;
using planner::FluidMix;
using planner::FluidPrices;
using planner::FluidStep;

constexpr size_t kMostWork = 16'000'000;  // operations of gaps looked at, in all steps together
constexpr size_t kFewestSteps = 300;
constexpr size_t kMostSteps = 800;
// Of the mix, in units of its own (core/planner/prices/fluid_mix.h); and for each operation of the
// gaps before it is looked at for the first time.
constexpr uint64_t kMostMixWork = 150'000'000;
constexpr uint32_t kMostMixEffort = 4;
constexpr uint64_t kFirstMixWork = 50;
constexpr double kLittle = 1e-3;  // of the bound: so little more does not count

bool AddChain(const IdleGaps& step, const CopyChain& chain, FluidStep* fluid) {
  FluidChain to;
  to.is_clean = chain.from == kNeverDirty;
  to.from = to.is_clean ? 0 : chain.from + 1;
  to.bytes = static_cast<double>(chain.bytes);
  to.first_gap = static_cast<uint32_t>(fluid->gaps.size());
  for (uint32_t g = chain.first_gap; g < chain.first_gap + chain.gap_count; ++g) {
    FluidGap away;
    away.first = step.chain_gaps[g].from + 1;
    away.next = step.chain_gaps[g].to;
    if (!fluid->IsTight(away)) continue;
    if (!fluid->gaps.Append(away)) return false;
    ++to.gap_count;
  }
  return to.gap_count == 0 || fluid->chains.Append(to);
}

// What the prices are worth, whoever found them. Slots are those of
// core/planner/prices/fluid_step.h.
class Valuation {
 public:
  Valuation(const IdleGaps& step, const Machine& machine)
      : step_(step), machine_(machine), n_(static_cast<uint32_t>(step.demand.size())) {}

  template <typename Prices>
  [[nodiscard]] bool Init(const Prices& prices) {
    if (!away_.Resize(n_) || !out_.Resize(3 * size_t{n_}) || !in_.Resize(3 * size_t{n_}) ||
        !way_out_.Resize(2 * size_t{n_} + 1)) {
      return false;
    }
    for (uint32_t k = 0; k < n_; ++k) away_[k] = std::max(prices.away_price(k), 0.0);
    for (uint32_t slot = 0; slot < 3 * n_; ++slot) {
      out_[slot] = std::max(prices.out_price(slot), 0.0);
      in_[slot] = std::max(prices.in_price(slot), 0.0);
      const double worth = Worth(slot);
      if (worth <= 1) continue;
      out_[slot] /= worth;
      in_[slot] /= worth;
    }
    return true;
  }

  double Run() {
    double value = 0;
    for (uint32_t k = 0; k < n_; ++k) {
      value += away_[k] * static_cast<double>(step_.demand[k]);
      value -= Worth(3 * k + 2) * static_cast<double>(step_.duration[k]);
    }
    for (const CopyChain& chain : step_.chains) {
      value -= Gain(chain) * static_cast<double>(chain.bytes);
    }
    return value;
  }

 private:
  // The most that a ns of both links during the slot can carry.
  double Worth(uint32_t slot) const {
    const double out = out_[slot] / 1e9, in = in_[slot] / 1e9;
    return std::max({out * machine_.out_rate, in * machine_.in_rate,
                     out * machine_.out_rate_duplex + in * machine_.in_rate_duplex});
  }

  // The most that a byte of the chain can gain: it is away in some gaps, from the last to the
  // first.
  double Gain(const CopyChain& chain) {
    const bool is_clean = chain.from == kNeverDirty;
    if (!is_clean) {
      FindWaysOut(chain.from + 1, step_.chain_gaps[chain.first_gap + chain.gap_count - 1].to);
    }
    double later = 0;  // of the gaps behind
    double best = 0;
    for (uint32_t g = chain.gap_count; g-- > 0;) {
      const IdleGap& gap = step_.chain_gaps[chain.first_gap + g];
      double alone = 0;
      double stay = 0;  // away from operation r on, with the way in
      double way_in = in_[(3 * gap.to + 1) % in_.size()];
      for (uint32_t r = gap.to - 1; r > gap.from; --r) {
        stay = away_[r % n_] + (r + 1 == gap.to ? -way_in : std::max(stay, -way_in));
        for (uint32_t slot = 3 * r + 1; slot < 3 * r + 4; ++slot) {
          way_in = std::min(way_in, in_[slot % in_.size()]);
        }
        alone = std::max(alone, stay);
        if (!is_clean) best = std::max(best, stay + later - way_out_[r - chain.from - 1]);
      }
      later += alone;
    }
    return is_clean ? later : best;
  }

  // From the wait before operation `from` on, the cheapest slot up to the one before each
  // operation.
  void FindWaysOut(uint32_t from, uint32_t until) {
    double cheapest = out_[3 * from % out_.size()];
    for (uint32_t i = from; i < until; ++i) {
      way_out_[i - from] = cheapest;
      for (uint32_t slot = 3 * i + 1; slot < 3 * i + 4; ++slot) {
        cheapest = std::min(cheapest, out_[slot % out_.size()]);
      }
    }
  }

  const IdleGaps& step_;
  const Machine& machine_;
  const uint32_t n_;
  Array<double> away_, out_, in_;  // ns per byte
  Array<double> way_out_;          // of the chain at hand, per operation from its first on
};

}  // namespace

bool FindFluidBound(const IdleGaps& gaps, const Machine& machine, double expected, uint32_t effort,
                    double* stall) {
  *stall = 0;
  FluidStep fluid;
  const size_t n = gaps.demand.size();
  if (!fluid.demand.Resize(n) || !fluid.duration.Resize(n)) return false;
  for (size_t i = 0; i < n; ++i) {
    fluid.demand[i] = static_cast<double>(gaps.demand[i]);
    fluid.duration[i] = static_cast<double>(gaps.duration[i]);
  }
  for (const CopyChain& chain : gaps.chains) {
    if (!AddChain(gaps, chain, &fluid)) return false;
  }
  if (!fluid.Classify()) return false;
  const size_t most_work = kMostWork * effort;
  if (fluid.size == 0 || fluid.size > most_work / kFewestSteps) return true;
  FluidPrices prices(fluid, machine);
  const auto steps = static_cast<uint32_t>(std::min(most_work / fluid.size, kMostSteps * effort));
  if (!prices.Run(steps, expected)) return false;
  Valuation valuation(gaps, machine);
  if (!valuation.Init(prices)) return false;
  *stall = std::max(valuation.Run(), 0.0);
  // What bytes do near them says better ones.
  Machine roomy = machine;
  roomy.host_budget = kNoLimit;
  FluidMix mix(fluid, roomy);
  if (!mix.Start(prices, expected)) return false;
  const uint64_t most = kMostMixWork * std::min(effort, kMostMixEffort);
  double before = 0;
  uint32_t settled = 0;  // times in a row; once may be by chance
  for (uint64_t work = kFirstMixWork * fluid.size; work <= most && settled < 2; work *= 2) {
    mix.Improve(work);
    if (!valuation.Init(mix)) return false;
    const double value = valuation.Run();
    *stall = std::max(value, *stall);
    const bool is_close = value >= before && value - before <= kLittle * value;
    settled = is_close ? settled + 1 : 0;
    before = value;
  }
  return true;
}

}  // namespace tidemark::core
