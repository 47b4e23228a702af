// Random steps and machines by seed, for properties that must hold for any input: odd sizes, ties,
// operations without accesses, buffers that may not move, persistent and transient ones.
// Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_ANY_STEP_H_
#define TIDEMARK_TESTS_STEP_ANY_STEP_H_

#include <algorithm>
#include <random>
#include <vector>

#include "tests/step/step_builder.h"

namespace tidemark::steps {

inline uint64_t Below(std::mt19937_64& random, uint64_t limit) { return random() % limit; }

// 1 to `most_ops` operations and 1 to `most_buffers` buffers of 1 KiB to 32 MiB.
inline core::Step AnyStep(std::mt19937_64& random, uint32_t most_ops, uint32_t most_buffers) {
  StepBuilder s;
  const uint64_t ops = 1 + Below(random, most_ops);
  const uint64_t count = 1 + Below(random, most_buffers);
  std::vector<StepBuilder::Buffers> reads(ops), writes(ops);
  for (uint64_t b = 0; b < count; ++b) {
    const core::Bytes bytes = Below(random, 5) == 0 ? 1024 + Below(random, core::kMiB)
                                                    : core::kMiB * (1 + Below(random, 32));
    const bool persistent = Below(random, 3) == 0;
    const core::BufferIndex buffer = persistent ? s.Persistent(bytes) : s.Transient(bytes);
    s.step().buffers[buffer].movable = Below(random, 8) != 0;
    const bool written = Below(random, 4) != 0;
    for (uint64_t k = Below(random, 4) + (persistent ? 0 : 1); k > 0; --k) {
      const uint64_t op = Below(random, ops);
      if (Below(random, 2) == 0 || !written) reads[op].push_back(buffer);
      if (written && Below(random, 2) == 0) writes[op].push_back(buffer);
    }
    if (!persistent) writes[Below(random, ops)].push_back(buffer);  // used at least once
    if (persistent && Below(random, 8) != 0) reads[Below(random, ops)].push_back(buffer);
  }
  for (uint64_t i = 0; i < ops; ++i) {
    const auto duration = static_cast<core::Nanoseconds>(Below(random, 6) * 200000);
    s.Op(duration, reads[i], writes[i]);
  }
  for (core::StepBuffer& b : s.step().buffers) {
    if (b.persistent || Below(random, 4) != 0) continue;
    b.born -= static_cast<core::OpIndex>(Below(random, b.born + 1));
    b.freed += static_cast<core::OpIndex>(Below(random, ops - b.freed));
  }
  return s.Take();
}

// Budgets are left open; rates are such that copies cost about as much as operations.
inline core::Machine AnyMachine(std::mt19937_64& random) {
  core::Machine m;
  m.out_rate = 1e9 * static_cast<double>(2 + Below(random, 60));
  m.in_rate = 1e9 * static_cast<double>(2 + Below(random, 60));
  m.out_rate_duplex = m.out_rate * (Below(random, 2) == 0 ? 1 : 0.6);
  m.in_rate_duplex = m.in_rate * (Below(random, 2) == 0 ? 1 : 0.45);
  m.safepoint = Below(random, 3) == 0 ? 0 : static_cast<core::Nanoseconds>(Below(random, 30000));
  m.min_bytes = Below(random, 2) == 0 ? core::kMiB : 1;
  return m;
}

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_ANY_STEP_H_
