// Small steps for the planner's tests: built by hand or by a seed. Not the generators of
// transformer steps in tests/step, which are for scores. Threads: none of its own.

#ifndef TIDEMARK_TESTS_CORE_PLANNER_STEPS_H_
#define TIDEMARK_TESTS_CORE_PLANNER_STEPS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/step.h"

namespace tidemark::core {

// Collects operations and accesses; buffers first.
class StepMaker {
 public:
  BufferIndex Persistent(Bytes bytes) { return Add({bytes, true, true, 0, 0}); }
  BufferIndex Transient(Bytes bytes, OpIndex born, OpIndex freed) {
    return Add({bytes, false, true, born, freed});
  }
  void Op(Nanoseconds duration, const std::vector<StepAccess>& accesses) {
    const auto first = static_cast<uint32_t>(step_.accesses.size());
    for (const StepAccess& access : accesses) EXPECT_TRUE(step_.accesses.Append(access));
    EXPECT_TRUE(step_.ops.Append({duration, first, static_cast<uint32_t>(accesses.size())}));
  }
  Step& step() { return step_; }

 private:
  BufferIndex Add(const StepBuffer& buffer) {
    EXPECT_TRUE(step_.buffers.Append(buffer));
    return static_cast<BufferIndex>(step_.buffers.size() - 1);
  }
  Step step_;
};

inline StepAccess Reads(BufferIndex b) { return {b, true, false}; }
inline StepAccess Writes(BufferIndex b) { return {b, false, true}; }

inline Bytes LivePeakOf(const Step& step) {
  Bytes peak = 0;
  for (OpIndex i = 0; i < step.ops.size(); ++i) {
    Bytes live = 0;
    for (const StepBuffer& b : step.buffers) {
      if (b.persistent || (b.born <= i && i <= b.freed)) live += b.bytes;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

// Forward and backward through `layers` layers: weights are read twice and written at the end,
// activations are written forward and read backward.
inline void MakeChain(uint32_t layers, Bytes bytes, Nanoseconds duration, StepMaker* maker) {
  std::vector<BufferIndex> weights, activations;
  for (uint32_t l = 0; l < layers; ++l) weights.push_back(maker->Persistent(bytes / 4));
  for (uint32_t l = 0; l < layers; ++l) {
    activations.push_back(maker->Transient(bytes, l, 2 * layers - 1 - l));
  }
  for (uint32_t l = 0; l < layers; ++l) {
    std::vector<StepAccess> accesses = {Reads(weights[l]), Writes(activations[l])};
    if (l > 0) accesses.push_back(Reads(activations[l - 1]));
    maker->Op(duration, accesses);
  }
  for (uint32_t l = layers; l-- > 0;) {
    std::vector<StepAccess> accesses = {Writes(weights[l]), Reads(activations[l])};
    if (l > 0) accesses.push_back(Reads(activations[l - 1]));
    maker->Op(2 * duration, accesses);
  }
}

// Any valid step: up to `buffers` buffers of 1 to 8 chunks, some persistent, some pinned.
inline void MakeRandomStep(uint64_t seed, uint32_t ops, uint32_t buffers, StepMaker* maker) {
  std::mt19937_64 random(seed);
  const auto up_to = [&random](uint64_t most) { return random() % (most + 1); };
  std::vector<std::vector<StepAccess>> accesses(ops);
  for (uint32_t b = 0; b < buffers; ++b) {
    const Bytes bytes = kChunkBytes * (1 + up_to(7)) - (up_to(3) == 0 ? 512 * up_to(2000) : 0);
    const bool persistent = up_to(2) == 0;
    OpIndex born = 0, freed = ops - 1;
    if (!persistent) {
      born = static_cast<OpIndex>(up_to(ops - 1));
      freed = born + static_cast<OpIndex>(up_to(ops - 1 - born));
    }
    if (persistent) {
      maker->Persistent(bytes);
    } else {
      maker->Transient(bytes, born, freed);
    }
    maker->step().buffers[b].movable = up_to(9) != 0;
    const uint64_t uses = 1 + up_to(3);
    std::vector<OpIndex> at;
    for (uint64_t u = 0; u < uses; ++u)
      at.push_back(born + static_cast<OpIndex>(up_to(freed - born)));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    for (size_t u = 0; u < at.size(); ++u) {
      const bool writes = u == 0 ? !persistent : up_to(2) == 0;
      accesses[at[u]].push_back({b, !writes || up_to(1) == 0, writes});
    }
  }
  for (uint32_t i = 0; i < ops; ++i) {
    maker->Op(static_cast<Nanoseconds>(up_to(1'000'000)), accesses[i]);
  }
}

// A transient-only step of a few operations and buffers of one or two chunks, with every buffer
// used at birth and death: what the exact search finishes quickly.
inline void MakeTinyStep(uint64_t seed, uint32_t ops, uint32_t buffers, StepMaker* maker) {
  std::mt19937_64 random(seed);
  const auto up_to = [&random](uint64_t most) { return random() % (most + 1); };
  std::vector<std::vector<StepAccess>> accesses(ops);
  for (uint32_t b = 0; b < buffers; ++b) {
    const auto born = static_cast<OpIndex>(up_to(ops - 1));
    const auto freed = born + static_cast<OpIndex>(up_to(ops - 1 - born));
    maker->Transient(kChunkBytes * (1 + up_to(1)), born, freed);
    std::vector<OpIndex> at = {born, freed};
    for (uint64_t u = up_to(3); u > 0; --u) {
      at.push_back(born + static_cast<OpIndex>(up_to(freed - born)));
    }
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    for (size_t u = 0; u < at.size(); ++u) {
      const bool writes = u == 0 || up_to(2) == 0;
      accesses[at[u]].push_back({b, !writes || up_to(1) == 0, writes});
    }
  }
  for (uint32_t i = 0; i < ops; ++i) {
    maker->Op(static_cast<Nanoseconds>(20'000 + up_to(200'000)), accesses[i]);
  }
}

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_PLANNER_STEPS_H_
