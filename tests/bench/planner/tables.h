// Prints what the planner scoreboard found: aggregates, worst cells, the summary against its
// targets, and every cell as CSV. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_TABLES_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_TABLES_H_

#include <string>
#include <vector>

#include "tests/bench/planner/cell.h"

namespace tidemark::bench {

inline constexpr int kCapsPercent[] = {60, 50, 40, 30, 20};
inline constexpr double kRatesGb[] = {6, 12, 25, 55};

void PrintNets(const std::vector<Net>& nets);
void PrintByNet(const std::vector<Cell>& cells);
void PrintByCapAndRate(const std::vector<Cell>& cells);
void PrintWorst(const std::vector<Cell>& cells, size_t count);
// Where another policy's step is shorter than ours: there our plan is loose for sure.
void PrintBeaten(const std::vector<Cell>& cells, size_t count);
void PrintEvery(const std::vector<Cell>& cells);
// One line for each target: its figure, and "met" or "not met".
void PrintSummary(const std::vector<Cell>& cells);
// False: the file could not be written.
bool WriteCsv(const std::vector<Cell>& cells, const std::string& path);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_TABLES_H_
