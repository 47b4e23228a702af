// Random steps that the exact search can finish: a few operations, a few buffers of one to three
// chunks, and a machine that is short of memory. By seed, equal everywhere. Threads: none of its
// own.

#ifndef TIDEMARK_TESTS_STEP_RANDOM_STEP_H_
#define TIDEMARK_TESTS_STEP_RANDOM_STEP_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "core/step.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {

struct RandomStepShape {
  uint32_t ops = 6;
  uint32_t buffers = 5;
  double persistent = 0;  // probability
  core::Bytes most_chunks = 2;
};

inline constexpr core::Bytes kRandomChunk = 4;

class RandomStep {
 public:
  RandomStep(uint64_t seed, const RandomStepShape& shape) : random_(seed) {
    StepBuilder builder;
    std::vector<std::vector<int>> uses(shape.ops);  // per operation: 4 * buffer + write + 2 * read
    for (uint32_t b = 0; b < shape.buffers; ++b) {
      const core::Bytes bytes = 1 + Below(kRandomChunk * shape.most_chunks);
      const bool persistent = Chance(shape.persistent);
      if (persistent)
        builder.Persistent(bytes);
      else
        builder.Transient(bytes);
      AddUses(b, persistent, &uses);
    }
    for (const std::vector<int>& of_op : uses) {
      StepBuilder::Buffers reads, writes;
      for (const int use : of_op) {
        const auto buffer = static_cast<core::BufferIndex>(use / 4);
        if (use & 1) writes.push_back(buffer);
        if (use & 2) reads.push_back(buffer);
      }
      builder.Op(static_cast<core::Nanoseconds>(Below(12)), reads, writes);
    }
    step = builder.Take();
    MakeMachine();
  }

  core::Step step;
  core::Machine
      machine;  // 1 to 2 bytes per ns; budget between the largest working set and the peak

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool Chance(double p) { return static_cast<double>(random_() % 1000) < p * 1000; }

 private:
  void AddUses(uint32_t b, bool persistent, std::vector<std::vector<int>>* uses) {
    const auto ops = static_cast<uint32_t>(uses->size());
    const auto count = static_cast<uint32_t>(persistent ? 1 + Below(2) : 2 + Below(2));
    std::vector<uint32_t> at;
    for (uint32_t i = 0; i < ops; ++i) at.push_back(i);
    std::shuffle(at.begin(), at.end(), random_);
    at.resize(std::min(ops, count));
    std::sort(at.begin(), at.end());
    const bool read_only = persistent && Chance(0.4);
    for (size_t u = 0; u < at.size(); ++u) {
      const bool writes = !read_only && ((u == 0 && !persistent) || Chance(0.35));
      const bool reads = !writes || Chance(0.5);
      (*uses)[at[u]].push_back(static_cast<int>(4 * b + (writes ? 1 : 0) + (reads ? 2 : 0)));
    }
  }

  // Bytes used by, and alive at, each operation.
  void MakeMachine() {
    core::Bytes peak = 0;
    core::Bytes most_used = 0;
    for (core::OpIndex i = 0; i < step.ops.size(); ++i) {
      core::Bytes alive = 0;
      core::Bytes used = 0;
      for (const core::StepBuffer& b : step.buffers) {
        if (b.persistent || (b.born <= i && i <= b.freed)) alive += b.bytes;
      }
      for (uint32_t a = 0; a < step.ops[i].access_count; ++a) {
        used += step.buffers[step.accesses[step.ops[i].first_access + a].buffer].bytes;
      }
      peak = std::max(peak, alive);
      most_used = std::max(most_used, used);
    }
    machine.device_budget = most_used + Below(peak - most_used + 1);
    machine.chunk_bytes = kRandomChunk;
    machine.min_bytes = 1;
    const auto out = static_cast<double>(2 + Below(3));
    const auto in = static_cast<double>(2 + Below(3));
    SetRates(out * 0.5e9, in * 0.5e9, &machine);
  }

  std::mt19937_64 random_;
};

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_RANDOM_STEP_H_
