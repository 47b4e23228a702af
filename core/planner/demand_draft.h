// A draft made from demand alone: what is used farthest in the future leaves when an operation
// needs the room (Belady's rule), its copy out starts right after its last use, and it returns as
// late as the link in needs to be in time, where there is room. It knows nothing of waits, which
// makes it the better start where the device's demand swings from operation to operation. Threads:
// none of its own.

#ifndef TIDEMARK_CORE_PLANNER_DEMAND_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_DEMAND_DRAFT_H_

#include "core/planner/draft.h"

namespace tidemark::core::planner {

DraftResult DraftByDemand(const Timeline& timeline, const Machine& machine, Draft* draft);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_DEMAND_DRAFT_H_
