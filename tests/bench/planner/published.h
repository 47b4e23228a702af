// Table 2: the setting of G10 (Zhang et al., MICRO 2023, arXiv 2310.09443): its published step
// times beside what the same steps take here. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_PUBLISHED_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_PUBLISHED_H_

#include <vector>

#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

void PrintPublished(const std::vector<Net>& nets);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_PUBLISHED_H_
