// Table 4: Tidemark's modes, by net: how small the peak gets without and with a slowdown, and what
// the smallest possible peak costs. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_MODES_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_MODES_H_

#include <vector>

#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

void PrintModes(const std::vector<Net>& nets);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_MODES_H_
