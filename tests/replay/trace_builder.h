// Writes a generated trace: allocations, frees, steps. Also the generators' source of chance, the
// same on every machine. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_TRACE_BUILDER_H_
#define TIDEMARK_TESTS_REPLAY_TRACE_BUILDER_H_

#include <vector>

#include "tests/replay/trace.h"
#include "tests/split_mix.h"

namespace tidemark::replay {

class Chance : public SplitMix {
 public:
  using SplitMix::SplitMix;

  // Of [low, high].
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next() % (high - low + 1); }
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
