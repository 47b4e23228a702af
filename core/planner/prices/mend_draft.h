// Mends a draft that is short of room by little, here and there: what is away nearby leaves a
// little sooner or returns a little later. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_MEND_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_PRICES_MEND_DRAFT_H_

#include "core/planner/draft.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// What it cannot mend is left to CoverDemand. False: no host memory.
[[nodiscard]] bool MendDraft(const Timeline& timeline, const Machine& machine, Draft* draft);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_MEND_DRAFT_H_
