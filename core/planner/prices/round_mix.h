// Rounds what bytes do in the mean (fluid_mix.h) to chunks. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_ROUND_MIX_H_
#define TIDEMARK_CORE_PLANNER_PRICES_ROUND_MIX_H_

#include "core/planner/draft.h"
#include "core/planner/prices/fluid_mix.h"
#include "core/planner/prices/fluid_step.h"
#include "core/planner/timeline.h"

namespace tidemark::core::planner {

// The mix is of the step, its shares are found, and the draft is empty. False: no host memory.
[[nodiscard]] bool RoundMix(const Timeline& timeline, Bytes chunk, const FluidStep& step,
                            const FluidMix& mix, Draft* draft);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_ROUND_MIX_H_
