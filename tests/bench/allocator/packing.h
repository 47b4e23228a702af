// Offline packing: addresses chosen with all lifetimes known, the floor under what an allocator
// that does not move memory can reach. Greedy in three orders (size, size times lifetime,
// lifetime), each block in the smallest gap between the placed blocks it meets; the best order
// counts. Streams and processes are ignored, which makes the floor lower, not higher. Threads:
// none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_PACKING_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_PACKING_H_

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

// Bytes of the best packing found, at a rounding of 512 B.
Bytes OfflinePacking(const replay::Trace& trace);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_PACKING_H_
