// Large random steps for measuring how long planning takes: buffers of 0.5 to 20 MiB, each used up
// to four times, some of them close together and some all over the step, so that no order of layers
// helps. By seed. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_LARGE_STEP_H_
#define TIDEMARK_TESTS_STEP_LARGE_STEP_H_

#include <algorithm>
#include <random>
#include <vector>

#include "tests/step/any_step.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {

inline core::Step LargeStep(uint64_t seed, uint32_t ops, uint32_t buffers) {
  constexpr int64_t kNear = 200;            // operations between the uses of most transient ones
  constexpr uint64_t kLongestNs = 500'000;  // of an operation
  std::mt19937_64 random(seed);
  StepBuilder s;
  std::vector<StepBuilder::Buffers> reads(ops), writes(ops);
  for (uint32_t k = 0; k < buffers; ++k) {
    const bool persistent = Below(random, 10) < 3;
    const core::Bytes bytes = core::kMiB / 2 * (1 + Below(random, 40));
    const core::BufferIndex b = persistent ? s.Persistent(bytes) : s.Transient(bytes);
    const auto centre = static_cast<int64_t>(Below(random, ops));
    for (uint64_t uses = 1 + Below(random, 4); uses > 0; --uses) {
      const bool anywhere = persistent || Below(random, 10) < 3;
      const int64_t near = centre - kNear + static_cast<int64_t>(Below(random, 2 * kNear + 1));
      const int64_t at = anywhere ? static_cast<int64_t>(Below(random, ops)) : near;
      const auto op = static_cast<size_t>(std::clamp<int64_t>(at, 0, int64_t{ops} - 1));
      reads[op].push_back(b);
      if (Below(random, 2) == 0) writes[op].push_back(b);
    }
  }
  for (uint32_t i = 0; i < ops; ++i) {
    s.Op(static_cast<core::Nanoseconds>(Below(random, kLongestNs)), reads[i], writes[i]);
  }
  return s.Take();
}

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_LARGE_STEP_H_
