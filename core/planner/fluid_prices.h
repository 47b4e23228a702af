// Prices for absent bytes and for link time at which the bytes of a fluid step, each doing what
// pays best, come close to its fastest execution: not at any one of the prices, but in a weighed
// mean over many near the best. core/bounds asks for the best ones, too, and values them by itself.
// Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_
#define TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/fluid_step.h"
#include "core/price_ascent.h"
#include "core/step.h"

namespace tidemark::core::planner {

// Which share of some bytes does something when, in the weighed mean: share[k] of them at first +
// k.
struct FluidShares {
  uint32_t first = 0;
  uint32_t count = 0;
  uint32_t at = 0;  // in FluidPrices::share
};

class FluidPrices {
 public:
  // The step is kept by reference, and has a gap.
  FluidPrices(const FluidStep& step, const Machine& machine);

  // So many evaluations of all gaps, sampled by weight; `stall` in ns: how much longer than its
  // operations the step takes, at most. False: no host memory.
  [[nodiscard]] bool Run(uint32_t steps, double stall);

  // The best prices, in ns per byte.
  double away_price(uint32_t k) const { return ascent_.away(k) * away_unit_; }
  double out_price(uint32_t slot) const { return ascent_.out(slot) * out_unit_; }
  double in_price(uint32_t slot) const { return ascent_.in(slot)*in_unit_; }
  // Of a gap of the first chain of a class: boundaries, and slots of copies in.
  const FluidShares& release(uint32_t gap) const { return gap_shares_[gap].release; }
  const FluidShares& reserve(uint32_t gap) const { return gap_shares_[gap].reserve; }
  const FluidShares& in(uint32_t gap) const { return gap_shares_[gap].in; }
  // Of a class: slots of copies out.
  const FluidShares& out(uint32_t alike) const { return out_shares_[alike]; }
  double share(const FluidShares& shares, uint32_t k) const {
    return shares_[shares.at + k] * scale_;
  }

 private:
  // What one byte of a gap does best if it leaves at some boundary, the way out not counted.
  struct Stay {
    double gain;  // ns per byte
    uint32_t reserve;
    uint32_t in_slot;
  };

  struct Cheapest {
    double price;
    uint32_t slot;
  };

  [[nodiscard]] bool Allocate();
  void Start();
  [[nodiscard]] bool AllocateShares();
  void Share(double weight);
  double Evaluate();
  void SpreadPrices();
  double Chain(uint32_t alike);
  double Gap(const FluidGap& gap, uint32_t first_stay, uint32_t* release);
  double LeaveFirst(const FluidChain& chain, double later, uint32_t* first, uint32_t* copy_slot);

  const FluidStep& step_;
  const uint32_t n_;
  PriceAscent ascent_;
  double away_unit_ = 0, out_unit_ = 0, in_unit_ = 0;  // ns per byte, of a price of 1
  Array<double> away_, out_, in_;  // prices in ns per byte, over two iterations and a bit
  // Per boundary: of the slots since the one before, up to the wait for copies out at it; and of
  // those from its wait for copies in up to the next one's for copies out.
  Array<Cheapest> cheap_out_, cheap_in_;
  double lowest_out_ = 0;    // of all of out_
  Array<double> leaves_;     // bytes per boundary, less those that return
  Array<Stay> stay_;         // of the chain at hand, per boundary of its gaps
  Array<uint32_t> release_;  // per gap of it: the best, kNone: none pays ...
  Array<double> gain_;       // ... and what that gains
  // What is done at the prices now.
  struct Choice {
    uint32_t release, reserve, in_slot;  // kNone: the bytes stay
  };
  Array<Choice> now_;       // per gap
  Array<uint32_t> copied_;  // per class: slot; kNone: nothing is copied out
  // What is done in the weighed mean: times scale_, which saves going through all at each step.
  struct GapShares {
    FluidShares release, reserve, in;
  };
  Array<GapShares> gap_shares_;
  Array<FluidShares> out_shares_;
  Array<double> shares_;
  double scale_ = 1;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_FLUID_PRICES_H_
