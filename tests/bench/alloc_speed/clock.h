// A clock for calls of tens of nanoseconds: the processor's cycle counter where there is one, with
// the cost of reading it taken off.
//
// Threads: any.

#ifndef TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CLOCK_H_
#define TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <cstdint>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace tidemark::bench {

inline uint64_t Ticks() {
#ifdef __x86_64__
  unsigned core;
  return __rdtscp(&core);
#else
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
#endif
}

struct Calibration {
  double ns_per_tick = 1;
  uint64_t overhead = 0;  // ticks that two readings in a row are apart

  Calibration() {
    const auto start = std::chrono::steady_clock::now();
    const uint64_t first = Ticks();
    overhead = ~uint64_t{0};
    std::chrono::duration<double, std::nano> passed{};
    while (passed.count() < 2e7) {
      const uint64_t a = Ticks();
      overhead = std::min(overhead, Ticks() - a);
      passed = std::chrono::steady_clock::now() - start;
    }
    ns_per_tick = passed.count() / static_cast<double>(Ticks() - first);
  }
  double Nanoseconds(uint64_t ticks) const {
    return static_cast<double>(ticks > overhead ? ticks - overhead : 0) * ns_per_tick;
  }
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOC_SPEED_CLOCK_H_
