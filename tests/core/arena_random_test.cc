// Random requests against the naive model, with the validity walk: sizes of all classes, frees with
// fences, chunks taken away, at several capacities. A failing seed reproduces the run.

#include <gtest/gtest.h>

#include <random>

#include "tests/core/arena_harness.h"

namespace tidemark::core {
namespace {

struct Case {
  unsigned seed;
  ChunkIndex capacity;
  int steps;
  int walk_every;
};

class RandomArena : public testing::TestWithParam<Case> {};

Bytes RandomSize(std::mt19937& random) {
  switch (random() % 8) {
    case 0:
    case 1:
    case 2:
      return random() % kSmallLimit + 1;
    case 3:
      return (random() % 8 + 1) * kMiB;  // few distinct sizes, as in a training step
    case 4:
      return 32 * kMiB + random() % (8 * kMiB);
    default:
      return kSmallLimit + random() % (6 * kMiB);
  }
}

TEST_P(RandomArena, NeverHandsOutBytesTwiceNorForgetsAFence) {
  const Case c = GetParam();
  std::mt19937 random(c.seed);
  ArenaHarness h(512, c.capacity);
  std::vector<Block*> live;
  FenceId fence = 0, passed = 0;
  for (int step = 0; step < c.steps; ++step) {
    const unsigned what = random() % 16;
    if (what < 8) {
      if (Block* block = h.Allocate(RandomSize(random), passed)) live.push_back(block);
    } else if (what < 15 && !live.empty()) {
      const size_t i = random() % live.size();
      if (random() % 4 == 0) ++fence;
      h.Free(live[i], random() % 2 == 0 ? fence : 0);
      live[i] = live.back();
      live.pop_back();
    } else {
      h.UnmapOne(0, 0);
      if (passed < fence) ++passed;
    }
    if (step % c.walk_every != 0) continue;
    ASSERT_TRUE(h.Valid()) << "seed " << c.seed << " step " << step;
  }
  for (Block* block : live) h.Free(block);
  h.arena().FoldCache();
  ASSERT_TRUE(h.Valid());
  EXPECT_EQ(h.arena().Stats(0).allocated, 0u);
  EXPECT_EQ(h.arena().Stats(0).slabs, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomArena,
                         testing::Values(Case{1, 512, 2000, 1}, Case{2, 64, 2000, 1},
                                         Case{3, 24, 2000, 1}, Case{4, 300, 30000, 100},
                                         Case{5, 64, 30000, 100}, Case{6, 8, 30000, 100}));

}  // namespace
}  // namespace tidemark::core
