// The arena under steps that bytes choose, four for each: what, and three for its argument. The
// naive model (tests/core/arena_model.h) watches; the walk runs after each step.

#include <cstdio>
#include <cstdlib>

#include "tests/core/arena_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tidemark::core::ChunkIndex;
  if (size < 4) return 0;
  tidemark::core::ArenaModel model(64, static_cast<ChunkIndex>(data[0] % 64 + 1),
                                   static_cast<ChunkIndex>(data[1] % 32));
  for (size_t i = 4; i + 4 <= size; i += 4) {
    const uint32_t argument = static_cast<uint32_t>(data[i + 1]) | uint32_t{data[i + 2]} << 8 |
                              uint32_t{data[i + 3]} << 16;
    model.Step(data[i], argument);
    model.Walk();
  }
  model.Finish();
  if (!model.broken().empty()) {
    std::fprintf(stderr, "arena fuzz: %s\n", model.broken().c_str());
    std::abort();
  }
  return 0;
}
