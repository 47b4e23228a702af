// Shares safepoints: a move's chunks may be given back at any boundary after its last use and its
// copy, and the buffer may be ready at any boundary between its copy in and its next use. The
// fewest boundaries that serve all moves. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_SAFEPOINTS_H_
#define TIDEMARK_CORE_PLANNER_SAFEPOINTS_H_

#include "core/array.h"
#include "core/plan.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// Moves `release` and `ready` of the plan's moves to earlier boundaries where that saves safepoints
// without a new wait. `out_done_at` and `in_done_at`: per move, see Evaluator. False: no host
// memory.
[[nodiscard]] bool ShareSafepoints(const Timeline& timeline, const Array<OpIndex>& out_done_at,
                                   const Array<OpIndex>& in_done_at, Plan* plan);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_SAFEPOINTS_H_
