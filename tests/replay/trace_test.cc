// Traces that are repeated, interleaved and generated: they hold together, and the same seed gives
// the same one.

#include "tests/replay/trace.h"

#include <gtest/gtest.h>

#include "tests/replay/generate.h"
#include "tests/replay/trace_builder.h"

namespace tidemark::replay {
namespace {

bool Same(const Trace& a, const Trace& b) {
  if (a.events.size() != b.events.size() || a.blocks.size() != b.blocks.size()) return false;
  for (size_t i = 0; i < a.events.size(); ++i) {
    if (a.events[i].block != b.events[i].block) return false;
    if (a.events[i].allocate != b.events[i].allocate) return false;
  }
  for (size_t i = 0; i < a.blocks.size(); ++i) {
    const BlockInfo& x = a.blocks[i];
    const BlockInfo& y = b.blocks[i];
    if (x.bytes != y.bytes || x.stream != y.stream || x.process != y.process) return false;
  }
  return a.steps == b.steps;
}

TEST(Repeat, FreesWhatAnIterationLeavesAndKeepsWhatItReplaced) {
  TraceBuilder b;
  const BlockId weight = b.Allocate(1000);
  const BlockId state = b.Allocate(500);
  b.trace.preexisting = 2;
  b.Allocate(100);  // a gradient, left behind
  b.Free(state);
  b.Allocate(500);  // the new state
  const Trace once = b.trace;
  const Trace thrice = Repeat(once, 3);
  EXPECT_EQ(Check(thrice), "");
  EXPECT_EQ(thrice.steps.size(), 3u);
  EXPECT_EQ(PeakRequested(thrice).requested, PeakRequested(once).requested);
  std::vector<bool> live(thrice.blocks.size());
  for (const Event& event : thrice.events) live[event.block] = event.allocate;
  Bytes left = 0;
  for (size_t i = 0; i < live.size(); ++i) left += live[i] ? thrice.blocks[i].bytes : 0;
  EXPECT_EQ(left, 1600u);
  EXPECT_TRUE(live[weight]);
}

// Two states of one size, each freed right after its successor was made, recur like that.
TEST(Repeat, ReplacesEqualBlocksInTheOrderInWhichTheyWereMade) {
  TraceBuilder b;
  const BlockId first = b.Allocate(500);
  const BlockId second = b.Allocate(500);
  b.trace.preexisting = 2;
  b.Allocate(500);  // a gradient, older than the states
  b.Allocate(500);
  b.Free(first);
  b.Allocate(500);
  b.Free(second);
  const Trace thrice = Repeat(b.trace, 3);
  EXPECT_EQ(Check(thrice), "");
  std::vector<size_t> born(thrice.blocks.size());
  std::vector<size_t> lives;
  for (size_t i = 0; i < thrice.events.size(); ++i) {
    const Event& event = thrice.events[i];
    if (event.allocate) {
      born[event.block] = i;
    } else if (event.block >= 2) {
      lives.push_back(i - born[event.block]);
    }
  }
  // Per iteration: the gradient is freed when the next one begins, each state a period and one
  // event after it was made.
  EXPECT_EQ(lives, (std::vector<size_t>{5, 7, 7, 5, 7, 7}));
}

TEST(Check, FindsFreesThatDoNotFit) {
  TraceBuilder b;
  const BlockId block = b.Allocate(1);
  b.Free(block);
  EXPECT_EQ(Check(b.trace), "");
  b.Free(block);
  EXPECT_EQ(Check(b.trace), "event 2: block 0 is freed while it is not live");
}

TEST(GeneratedTraces, HoldTogetherAndRecurWithTheSeed) {
  const std::vector<Trace> first = GeneratedTraces();
  const std::vector<Trace> second = GeneratedTraces();
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    SCOPED_TRACE(first[i].name);
    EXPECT_EQ(Check(first[i]), "");
    EXPECT_TRUE(Same(first[i], second[i]));
    EXPECT_GE(first[i].steps.size(), 10u);
    EXPECT_GT(PeakRequested(first[i]).requested, Bytes{1} << 30);
  }
}

// Nothing leaks from step to step: after the first one, each ends with as much as it began with.
TEST(GeneratedTraces, EndEachStepWithAsMuchAsTheLast) {
  TransformerShape shape;
  shape.shortest = 512;
  for (const bool recompute : {false, true}) {
    for (const uint64_t shards : {1, 8}) {
      for (const uint64_t rank : {0, 8}) {
        shape.recompute = recompute;
        shape.shards = shards;
        shape.rank = rank;
        const Trace trace = GenerateTransformer(shape);
        std::vector<Bytes> at_step;
        Bytes now = 0;
        size_t step = 0;
        for (size_t i = 0; i < trace.events.size(); ++i) {
          if (step < trace.steps.size() && trace.steps[step] == i) at_step.push_back(now), ++step;
          const Bytes bytes = trace.blocks[trace.events[i].block].bytes;
          now = trace.events[i].allocate ? now + bytes : now - bytes;
        }
        ASSERT_EQ(at_step.size(), shape.steps);
        for (size_t i = 2; i < at_step.size(); ++i) EXPECT_EQ(at_step[i], at_step[1]);
        EXPECT_EQ(now, at_step[1]);
      }
    }
  }
}

TEST(GenerateTransformer, AnotherSeedIsAnotherTrace) {
  TransformerShape shape;
  shape.shortest = 512;
  const Trace one = GenerateTransformer(shape);
  shape.seed = 2;
  EXPECT_FALSE(Same(one, GenerateTransformer(shape)));
}

TEST(RunAgain, FreesWhatIsLeftBetweenRuns) {
  QuantizedShape shape;
  shape.layers = 2;
  shape.steps = 2;
  const Trace once = GenerateQuantized(shape);
  const Trace twice = RunAgain(once, 2);
  EXPECT_EQ(Check(twice), "");
  EXPECT_EQ(twice.blocks.size(), 2 * once.blocks.size());
  EXPECT_EQ(twice.steps.size(), 2 * once.steps.size());
  EXPECT_EQ(PeakRequested(twice).requested, PeakRequested(once).requested);
}

TEST(Interleave, GivesEachPartItsOwnStreamsOrProcess) {
  TransformerShape shape;
  shape.layers = 2;
  shape.steps = 3;
  shape.shards = 2;  // two streams each
  const std::vector<Trace> parts = {GenerateTransformer(shape), GenerateTransformer(shape)};
  EXPECT_EQ(Interleave(parts, false, 1).streams(), 4u);
  EXPECT_EQ(Interleave(parts, true, 1).streams(), 2u);
  EXPECT_EQ(Interleave(parts, true, 1).processes(), 2u);
  EXPECT_EQ(Check(Interleave(parts, true, 1)), "");
}

}  // namespace
}  // namespace tidemark::replay
