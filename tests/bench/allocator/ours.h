// Tidemark's arena (core/arena.h) as the scoreboard drives it: a counting owner of chunks over the
// shared device, where a process that finds no chunk asks the others for the free ones they keep,
// as the daemon does. Nothing of the allocator's logic is here. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_OURS_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_OURS_H_

#include <memory>

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

struct OursOptions {
  uint32_t slack_permille = 0;
  bool use_default_slack = true;  // what the product starts with
  // Above 0: frees are in flight for so many requests (tests/core/late_fences.h). On which stream
  // is known for stream-ordered memory only, as in the shim.
  uint32_t requests_late = 0;
  bool in_stream_order = false;
};

std::unique_ptr<Policy> MakeOurs(Device* device, const OursOptions& options);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_OURS_H_
