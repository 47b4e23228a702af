// Writes a generated trace: allocations, frees, steps. Also the generators' source of chance, the
// same on every machine. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_TRACE_BUILDER_H_
#define TIDEMARK_TESTS_REPLAY_TRACE_BUILDER_H_

#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::replay {

// SplitMix64.
class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
  }
  // Of [low, high].
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next() % (high - low + 1); }

 private:
  uint64_t state_;
};

class TraceBuilder {
 public:
  BlockId Allocate(Bytes bytes, uint32_t stream = 0) {
    const auto block = static_cast<BlockId>(trace.blocks.size());
    trace.blocks.push_back({bytes, stream, 0});
    trace.events.push_back({block, true});
    return block;
  }
  void Free(BlockId block) { trace.events.push_back({block, false}); }
  void FreeAll(std::vector<BlockId>* blocks) {
    for (const BlockId block : *blocks) Free(block);
    blocks->clear();
  }
  void BeginStep() { trace.steps.push_back(trace.events.size()); }

  Trace trace;
};

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_TRACE_BUILDER_H_
