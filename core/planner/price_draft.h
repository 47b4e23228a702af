// A draft from prices, as another start: what the step would do if bytes were a fluid, rounded to
// chunks. Where most of what is alive must be away, this balances the links over the whole step,
// which a sweep does not. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_

#include "core/planner/draft.h"

namespace tidemark::core::planner {

inline constexpr uint32_t kFinest = 0;

// `stall` in ns: what the step takes on top of its operations, by a plan that exists. The budget
// holds roughly; CoverDemand sees to the rest. In so many stretches of the step; with few of them
// there are few safepoints; kFinest: one for each operation, or as many as there is work for. Takes
// what it needs from *work. kCannot: it needs nothing, or more work than there is, or the step is
// too long.
DraftResult DraftByPrices(const Timeline& timeline, const Machine& machine, double stall,
                          uint32_t stretches, uint64_t* work, Draft* draft);

// For all drafts of a plan: 4 to 5 ns each on a server's processor of 2.5 GHz.
inline constexpr uint64_t kPriceWork = 6'500'000;

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICE_DRAFT_H_
