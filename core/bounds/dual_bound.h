// The price bound: prices for absent bytes, for each moment, and for the links, for each slot, make
// a lower bound on the step's time, whatever they are, and the best of them make a tight one. They
// are found by a fixed number of subgradient steps; each step's value is a sound bound, so stopping
// early costs tightness and nothing else. docs/bounds.md derives it. Threads: none of its own.

#ifndef TIDEMARK_CORE_BOUNDS_DUAL_BOUND_H_
#define TIDEMARK_CORE_BOUNDS_DUAL_BOUND_H_

#include <cstdint>

#include "core/array.h"
#include "core/bounds/coarse_step.h"
#include "core/price_ascent.h"
#include "core/step.h"

namespace tidemark::core {

// With more moments than this there is time for few steps: they start small, near the prices of
// the coarser step.
inline constexpr uint32_t kFewMoments = 48;

// Prices that were found, so that a finer step can start from them: its bound is then no lower.
struct Prices {
  Array<uint32_t> ops;  // the moments' operations
  Array<double> price;  // per moment, per slot out, per slot in
};

class DualBound {
 public:
  // Both are kept by reference.
  DualBound(const CoarseStep& step, const Machine& machine);

  // Looks for a bound above `known_stall` ns, from `*prices` on if there are any; the best are put
  // there.
  [[nodiscard]] bool Run(double known_stall, Prices* prices);

  double stall() const { return best_; }  // ns on top of the durations, at least

 private:
  // What one byte of a gap does best at the current prices, from each moment on.
  struct Stay {
    double gain;       // ns per byte, if away from this moment on, the way in paid
    uint32_t last;     // the last moment away
    uint32_t in_slot;  // where it comes in
  };

  [[nodiscard]] bool Allocate();
  void StartFrom(const Prices& coarser);
  double Evaluate();
  double Chain(const CoarseChain& chain);
  double Gap(const CoarseGap& gap, uint32_t first_stay, uint32_t* entry);
  void Book(const CoarseGap& gap, uint32_t first_stay, uint32_t entry, double bytes);

  // A slot and what it costs in ns per byte.
  struct Cheap {
    double price;
    uint32_t slot;
  };
  void SpreadPrices();
  double OutPrice(uint32_t slot) const { return ascent_.out(slot % slots_) * out_unit_; }
  double InPrice(uint32_t slot) const { return ascent_.in(slot % slots_) * in_unit_; }

  const CoarseStep& step_;
  const uint32_t moments_;
  const uint32_t slots_;
  // Prices are numbers around 1; times these they are ns per byte.
  double away_unit_ = 0, out_unit_ = 0, in_unit_ = 0;
  PriceAscent ascent_;
  Array<double> best_price_;
  // By moment, as far as gaps count on: the price of a byte that is away, and the cheapest of the
  // two slots up to it (the way out) and of those behind it (the way in).
  Array<double> away_;
  Array<Cheap> cheap_out_, cheap_in_;
  // Of the chain at hand.
  Array<Stay> stay_;       // per moment of its gaps
  Array<uint32_t> entry_;  // per gap: the best moment to leave, at no cost for the way out ...
  Array<double> gain_;     // ... and what that gives
  double best_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_DUAL_BOUND_H_
