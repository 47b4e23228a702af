// Random steps against the naive model, and every call of the owner's side failing once.
// TIDEMARK_ARENA_STEPS: how many random steps, for longer runs.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/core/arena_model.h"

namespace tidemark::core {
namespace {

uint64_t Steps() {
  const char* text = std::getenv("TIDEMARK_ARENA_STEPS");
  return text == nullptr ? 1500000 : std::strtoull(text, nullptr, 10);
}

struct Case {
  unsigned seed;
  ChunkIndex capacity;
  int walk_every;
  bool faults;
  ChunkIndex host = 0;
};

class ArenaSteps : public testing::TestWithParam<Case> {};

TEST_P(ArenaSteps, KeepWhatTheArenaPromises) {
  const Case c = GetParam();
  std::mt19937 random(c.seed);
  ArenaModel model(256, c.capacity, c.host);
  model.faults = c.faults;
  const uint64_t steps = c.walk_every == 1 ? Steps() / 300 : Steps() / 6;
  for (uint64_t step = 0; step < steps; ++step) {
    model.Step(static_cast<uint8_t>(random()), static_cast<uint32_t>(random()));
    if (step % static_cast<uint64_t>(c.walk_every) == 0) model.Walk();
    ASSERT_EQ(model.broken(), "") << "seed " << c.seed << " step " << step;
  }
  model.Finish();
  EXPECT_EQ(model.broken(), "") << "seed " << c.seed;
}

INSTANTIATE_TEST_SUITE_P(Seeds, ArenaSteps,
                         testing::Values(Case{1, 256, 1, false}, Case{2, 40, 1, true},
                                         Case{3, 200, 500, false}, Case{4, 200, 500, true},
                                         Case{5, 64, 500, false}, Case{6, 64, 500, true},
                                         Case{7, 16, 500, true}, Case{8, 6, 500, true},
                                         Case{9, 40, 1, true, 20}, Case{10, 24, 500, false, 64},
                                         Case{11, 16, 500, true, 40}));

// The same steps again and again, each time with another call failing.
void FailEachCall(ChunkIndex host) {
  uint64_t chosen = 0, aliased = 0;
  const auto run = [host, &chosen, &aliased](uint64_t fail, uint64_t* calls) {
    std::mt19937 random(11);
    ArenaModel model(128, 24, host);
    model.faults = false;
    model.FailCall(fail);
    for (int step = 0; step < 1200; ++step) {
      model.Step(static_cast<uint8_t>(random()), static_cast<uint32_t>(random()));
      if (step % 10 == 0) model.Walk();
    }
    *calls = model.calls();
    chosen += model.counters().chosen;
    aliased += model.counters().aliased;
    model.Finish();
    return model.broken();
  };
  uint64_t calls = 0;
  ASSERT_EQ(run(~uint64_t{0}, &calls), "");
  ASSERT_GT(calls, 200u) << "the steps reach the owner's side";
  if (host == 0) {
    EXPECT_GT(chosen, 0u) << "some requests get the place that does the least harm";
  } else {
    EXPECT_GT(aliased, 0u) << "some chunks move while work is in flight";
  }
  for (uint64_t fail = 0, unused; fail < calls; ++fail) {
    ASSERT_EQ(run(fail, &unused), "") << "call " << fail << " failed";
  }
}

TEST(ArenaFaults, NoFailingCallLosesAnything) { FailEachCall(0); }
TEST(ArenaFaults, NorWhereChunksAreAcquiredAndLeaveForTheHost) { FailEachCall(16); }

}  // namespace
}  // namespace tidemark::core
