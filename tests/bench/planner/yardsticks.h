// What a user would pick instead of Tidemark, re-implemented from published descriptions to be
// measured in the same simulator. Not in the product, and not the authors' code: simplified where
// said, never against the method's interest. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_YARDSTICKS_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_YARDSTICKS_H_

#include <string>

#include "core/plan.h"
#include "core/step.h"

namespace tidemark::bench {

// Each: false, when it finds no plan; then *why_not says why.

// Unified memory as drivers do it: 2 MiB blocks come in when an operation needs them, and the least
// recently used leave for it, both while the operation waits. Without fault costs.
bool LruPlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
             std::string* why_not);

// The naive plan: whole buffers, the one with the farthest next use leaves (Belady's rule), copies
// out from the last use on, copies in at the latest start that looks in time.
bool NextUsePlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
                 std::string* why_not);

// Like DeepUM (Jung et al., ASPLOS 2023): prefetch of the 2 MiB blocks that the next 32 kernels
// will touch, by correlation tables that are taken as perfect, as in a step that repeats; early
// eviction of the least recently migrated blocks that those kernels do not touch.
bool DeepUmPlan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
                std::string* why_not);

// Like G10 (Zhang et al., MICRO 2023, arXiv 2310.09443): of all idle windows the one with the
// highest ratio of relieved memory pressure (bytes above capacity x time) to transfer time
// leaves, until pressure is below capacity or nothing helps; each link's time is booked; copies in
// start as early as capacity allows. What pressure remains is paged on demand. G10's second tier,
// an SSD, is not there.
bool G10Plan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
             std::string* why_not);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_YARDSTICKS_H_
