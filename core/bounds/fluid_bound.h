// The price bound of a step as it is, operation by operation, for plans that take and give memory
// at boundaries: a stall falls into the wait for copies out and, once memory has changed hands, the
// wait for copies in. Tighter than dual_bound.h where the step is short enough. docs/bounds.md
// derives it. Threads: none of its own.

#ifndef TIDEMARK_CORE_BOUNDS_FLUID_BOUND_H_
#define TIDEMARK_CORE_BOUNDS_FLUID_BOUND_H_

#include "core/bounds/idle_gaps.h"
#include "core/step.h"

namespace tidemark::core {

// *stall: ns on top of the durations, at least; 0 where the step is too long. `expected` in ns is
// what it is sought around; `effort` as in core/bounds.h. False: no host memory.
[[nodiscard]] bool FindFluidBound(const IdleGaps& gaps, const Machine& machine, double expected,
                                  uint32_t effort, double* stall);

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_FLUID_BOUND_H_
