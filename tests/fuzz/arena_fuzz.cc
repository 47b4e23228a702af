// The arena under steps that bytes choose, four for each: what, and three for its argument. The
// naive model (tests/core/arena_model.h) watches; the walk runs after each step. The second byte
// says how many training steps, that recur and differ where the bytes say, come in between.

#include <cstdio>
#include <cstdlib>

#include "tests/core/arena_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using tidemark::core::ChunkIndex;
  if (size < 4) return 0;
  const bool recurs = data[2] % 8 == 0;
  const auto capacity = static_cast<ChunkIndex>(recurs ? data[0] * 2 + 100 : data[0] % 64 + 1);
  tidemark::core::ArenaModel model(recurs ? 2048 : 64, capacity,
                                   static_cast<ChunkIndex>(data[1] % 32), {data[3] % 32u});
  model.states = data[1] / 32 * 5u;
  for (size_t i = 4; recurs && i < size && i < 40; ++i) {
    model.Period(data[3] / 32, data[i] < 128 ? ~uint32_t{0} : data[i] * 3u);
    model.Walk();
  }
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
