// Draws one executed plan as SVG: bytes on device and host over one iteration, what would be alive
// with nothing away, both links, and where the step stalls. Threads: none of its own.

#ifndef TIDEMARK_TESTS_BENCH_PLANNER_PICTURE_H_
#define TIDEMARK_TESTS_BENCH_PLANNER_PICTURE_H_

#include <string>

#include "tests/bench/planner/nets.h"

namespace tidemark::bench {

// Plans `net` at a cap and a rate, executes it, and writes the picture. False: it could not be
// planned or written, and *why_not says why.
bool DrawPlan(const Net& net, int cap_percent, double gb_per_s, const std::string& path,
              std::string* why_not);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PLANNER_PICTURE_H_
