// Table 5: whether more of anything is ever slower. Pairs of machines of which one has at least as
// much of everything as the other, on random small steps, and among the cells of table 1. Threads:
// runs on all cores.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_MORE_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_MORE_H_

#include <vector>

#include "tests/bench/planner/cell.h"

namespace tidemark::bench {

void PrintMore(const std::vector<Cell>& cells);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_MORE_H_
