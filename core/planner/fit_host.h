// What of a draft's use of the host's memory is not needed for what is away: copies made before
// their part leaves, still there when it came back, and kept for another window of the same
// content. Where the budget is exceeded, copies out start later, or are made again, as little as
// will do. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_FIT_HOST_H_
#define TIDEMARK_CORE_PLANNER_FIT_HOST_H_

#include "core/plan.h"
#include "core/planner/draft.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// In the order in which it gives up what it has.
enum class HostSaving : uint8_t {
  kWait,   // copies out that would run ahead of their place in the draft start in that place
  kBack,   // copies that came in before they have to be back are back at once
  kAgain,  // copies are made again instead of kept, farthest next window first
  kLate,   // copies out start later than the draft says, latest to leave first
};

// Changes the draft so that its copies fit, if that saving is enough; else as far as it goes.
// `plan` is the draft as written, move by move, and `host` what it takes of the host: both are out
// of date afterwards. False: no host memory.
[[nodiscard]] bool SaveHost(const Timeline& timeline, const Machine& machine, HostSaving saving,
                            const Plan& plan, Array<Bytes>* host, Draft* draft);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_FIT_HOST_H_
