// Table 3: plans made for one world and executed in another, and replans for the new one.
// Threads: runs on all cores.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_ROBUSTNESS_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_ROBUSTNESS_H_

#include <cstdint>
#include <vector>

#include "core/step.h"
#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

// The step with durations off by up to 25 %, by seed.
core::Step NoisyCopy(const core::Step& step, uint64_t seed);

void PrintRobustness(const std::vector<Net>& nets);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_ROBUSTNESS_H_
