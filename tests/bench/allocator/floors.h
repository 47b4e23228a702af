// What nobody can go below without doing more than a rule says, computed from the requests alone.
// Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_FLOORS_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_FLOORS_H_

#include "tests/replay/trace.h"

namespace tidemark::bench {

// The sum of the separate peaks of all processes: the least that processes hold together which keep
// what they once needed.
replay::Bytes SumOfPeaks(const replay::Trace& trace);

// The same for processes that give back at once what they did not need during their last `share`
// part of all their events: 12 where a trace has 12 steps is the least for whoever keeps his memory
// for one step.
replay::Bytes SumOfRecentPeaks(const replay::Trace& trace, size_t share);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_FLOORS_H_
