// A draft from prices, as another start: what the step would do if bytes were a fluid, rounded to
// chunks. Where most of what is alive must be away, this balances the links over the whole step,
// which a sweep does not. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_

#include "core/planner/draft.h"

namespace tidemark::core::planner {

// `stall` in ns: what the step takes on top of its operations, by a plan that exists. The budget
// holds roughly; CoverDemand sees to the rest. In so many stretches of the step; with few of them
// there are few safepoints. Takes what it needs from *work. kCannot: it needs nothing, or more work
// than there is.
DraftResult DraftByPrices(const Timeline& timeline, const Machine& machine, double stall,
                          uint32_t stretches, uint64_t* work, Draft* draft);

// In how many stretches a draft can be made at most: the operations of a step that is short enough,
// else fewer; 0: the step is too long.
uint32_t MostStretches(const Timeline& timeline);

// For all drafts of a plan, and once more for another one in long stretches: 4 to 5 ns each on a
// server's processor of 2.5 GHz.
inline constexpr uint64_t kPriceWork = 11'500'000;

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_
