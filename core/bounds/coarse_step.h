// A step reduced to a few moments: for each of them how many bytes must be away, and the time and
// link capacity between. Chains that look alike from there are one. Whatever holds for the step
// holds for it, so a bound for it is a bound for the step. Threads: none of its own.
//
// A moment is an operation, one in each of `moments` stretches of the step. Time falls into slots:
// slot 2k ends where the operation of moment k starts, slot 2k + 1 is that operation itself.
// Moments and slots count on through the iterations: moment k + moments is moment k, one iteration
// later.

#ifndef TIDEMARK_CORE_BOUNDS_COARSE_STEP_H_
#define TIDEMARK_CORE_BOUNDS_COARSE_STEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/bounds.h"
#include "core/bounds/idle_gaps.h"

namespace tidemark::core {

// The moments, first to last, at which bytes can be away.
struct CoarseGap {
  uint32_t first = 0;
  uint32_t last = 0;
};

struct CoarseChain {
  uint32_t from = 0;  // copies out may run from slot 2 * from on; kNeverDirty: none is needed
  uint32_t first_gap = 0;
  uint32_t gap_count = 0;
  double bytes = 0;
};

struct CoarseStep {
  uint32_t moments = 0;
  Array<uint32_t> ops;     // per moment: its operation
  Array<double> demand;    // per moment: bytes that must be away, 0 if none
  Array<double> duration;  // per slot, ns without stalls
  Array<CoarseChain> chains;
  Array<CoarseGap> gaps;

  [[nodiscard]] bool Build(const IdleGaps& step, uint32_t most_moments, Granularity granularity);

  // Moments in all gaps together.
  size_t Size() const;

 private:
  [[nodiscard]] bool ChooseOps(const IdleGaps& step, uint32_t most_moments);
  [[nodiscard]] bool AddChain(const IdleGaps& step, const CopyChain& chain);
  [[nodiscard]] bool Merge();
  bool Precedes(const CoarseChain& a, const CoarseChain& b) const;
  uint32_t FirstAfter(uint32_t op) const;
  uint32_t FirstFrom(uint32_t op) const;

  uint32_t op_count_ = 0;
  Array<uint32_t> first_after_;  // per operation: the first moment behind it
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_COARSE_STEP_H_
