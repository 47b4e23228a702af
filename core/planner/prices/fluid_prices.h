// Prices for room and link time in a fluid step (fluid_step.h): the dual of the linear program that
// says how much the step stalls at the least, nearly solved by the volume algorithm
// (core/price_ascent.h). core/bounds asks for the best ones, and values them by itself; what bytes
// do at them, and near them, is fluid_mix.h's. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_PRICES_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_PRICES_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/prices/fluid_course.h"
#include "core/planner/prices/fluid_step.h"
#include "core/price_ascent.h"
#include "core/step.h"

namespace tidemark::core::planner {

class FluidPrices {
 public:
  // The step is kept by reference, and has a gap.
  FluidPrices(const FluidStep& step, const Machine& machine);

  // So many evaluations of all gaps; `stall` in ns: how much longer than its operations the step
  // takes, at most. False: no host memory.
  [[nodiscard]] bool Run(uint32_t steps, double stall);

  // The best prices, in ns per byte.
  double away_price(uint32_t k) const { return ascent_.away(k) * away_unit_; }
  double out_price(uint32_t slot) const { return ascent_.out(slot) * out_unit_; }
  double in_price(uint32_t slot) const { return ascent_.in(slot)*in_unit_; }

 private:
  [[nodiscard]] bool Allocate();
  void Start();
  double Evaluate();
  void SpreadPrices();
  double Chain(uint32_t alike);

  const FluidStep& step_;
  const uint32_t n_;
  PriceAscent ascent_;
  double away_unit_ = 0, out_unit_ = 0, in_unit_ = 0;  // ns per byte, of a price of 1
  CourseFinder finder_;
  Array<double> leaves_;  // bytes per boundary, less those that return
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_PRICES_H_
