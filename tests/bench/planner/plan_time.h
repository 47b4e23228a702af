// Table 7: what one call of the planner costs, on large steps that are made for it and on the
// largest nets of the run. Threads: none, so that nothing of ours disturbs what is timed.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_PLAN_TIME_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_PLAN_TIME_H_

#include <vector>

#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

void PrintPlanTime(const std::vector<Net>& nets);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_PLAN_TIME_H_
