// Replays a trace through one kind of allocator, at one capacity or looking for the smallest one,
// and counts. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_MEASURE_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_MEASURE_H_

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

struct Replayed {
  bool completed = false;
  Bytes peak_held = 0;
  Usage at_peak;               // when the requested bytes are at their peak
  double mapped_per_step = 0;  // chunks mapped, mean over the second half of the iterations
  uint64_t largest_burst = 0;  // most chunks mapped for one request in that half
};

// `peak_event` as PeakRequested gives it. Stops at the first request that fails.
Replayed Replay(const replay::Trace& trace, const PolicyKind& kind, Bytes capacity,
                size_t peak_event);

// How closely a capacity is found: 2 MiB, or 1/4000 where that is more.
Bytes SearchStep(Bytes requested);

// The smallest capacity at which the trace completes, to within SearchStep, found by halving
// between `requested` (below it nothing completes) and `enough`. Allocators are not monotonic in
// their capacity: a smaller one may complete by luck, and is then not found. 0: not even at
// `enough`.
Bytes MinimumCapacity(const replay::Trace& trace, const PolicyKind& kind, Bytes requested,
                      Bytes enough);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_MEASURE_H_
