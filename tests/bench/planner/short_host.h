// Table 6: a host that is short of memory, too: how close plans come to the bound, and in how many
// cells there is none. Threads: runs on all cores.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_SHORT_HOST_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_SHORT_HOST_H_

#include <vector>

#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

void PrintShortHost(const std::vector<Net>& nets);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_SHORT_HOST_H_
