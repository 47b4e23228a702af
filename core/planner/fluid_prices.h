// Prices for absent bytes and for link time at which the bytes of a fluid step, each doing what
// pays best, come close to its fastest execution: not at any one of the prices, but in the mean
// over many near the best. Not a bound (core/bounds/dual_bound.h is one): it knows that memory is
// given back and taken at boundaries. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_
#define TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/fluid_step.h"
#include "core/price_ascent.h"
#include "core/step.h"

namespace tidemark::core::planner {

// What the bytes of a gap do at some prices.
struct FluidChoice {
  uint32_t release = kNone;  // kNone: they stay
  uint32_t reserve = 0;
  uint32_t copy_slot = 0;  // of the copy out that serves the whole chain
};

class FluidPrices {
 public:
  // The step is kept by reference, and has a gap.
  FluidPrices(const FluidStep& step, const Timeline& timeline, const Machine& machine);

  // So many evaluations of all gaps, the last of which are sampled; `stall` in ns: how much longer
  // than its operations the step takes, roughly. False: no host memory.
  [[nodiscard]] bool Run(uint32_t steps, double stall);

  static constexpr uint32_t kSamples = 256;
  const FluidChoice& choice(uint32_t sample, uint32_t gap) const {
    return choices_[sample * step_.gaps.size() + gap];
  }

 private:
  // What one byte of a gap does best if it leaves at some boundary, the way out not counted.
  struct Stay {
    double gain;  // ns per byte
    uint32_t reserve;
    uint32_t in_slot;
  };

  [[nodiscard]] bool Allocate();
  void Start();
  double Evaluate();
  void SpreadPrices();
  double Chain(const FluidChain& chain);
  double Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release);
  double LeaveFirst(const FluidChain& chain, double later, uint32_t* first, uint32_t* copy_slot);
  void Book(const Stay& stay, uint32_t release, double bytes);

  const FluidStep& step_;
  const Timeline& timeline_;
  const uint32_t n_;
  PriceAscent ascent_;
  double away_unit_ = 0, out_unit_ = 0, in_unit_ = 0;  // ns per byte, of a price of 1
  Array<double> away_, out_, in_;  // prices in ns per byte, over two iterations and a bit
  struct Cheap {
    double price;
    uint32_t slot;
  };
  static Cheap Cheapest(const Array<double>& prices, uint32_t slot);
  // Per boundary: of the three slots up to it, where a copy out that leaves there may be made, and
  // of the three behind it, where a copy in may.
  Array<Cheap> cheap_out_, cheap_in_;
  Array<Stay> stay_;         // of the chain at hand, per boundary of its gaps
  Array<uint32_t> release_;  // per gap of it: the best, kNone: none pays ...
  Array<double> gain_;       // ... and what that gains
  Array<FluidChoice> choices_;
  FluidChoice* sample_ = nullptr;  // per gap, while one is taken
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_
