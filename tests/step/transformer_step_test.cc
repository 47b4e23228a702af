// The generated steps keep what their shape promises.

#include "tests/step/transformer_step.h"

#include <gtest/gtest.h>

#include "tests/step/simulator.h"

namespace tidemark::steps {
namespace {

core::Bytes PeakOf(const TransformerShape& shape) { return LivePeak(TransformerStep(shape).step); }

double IdealOf(const TransformerShape& shape) {
  return Simulate(TransformerStep(shape).step, core::Machine(), core::Plan()).step_ns;
}

TransformerShape Small() {
  TransformerShape shape;
  shape.layers = 6;
  shape.width = 512;
  shape.heads = 8;
  shape.sequence = 512;
  shape.batch = 4;
  return shape;
}

TEST(TransformerStep, EveryShapeOfTheScoreboardIsAStepThatRuns) {
  for (const TransformerShape& shape : ScoreboardShapes()) {
    const NamedStep s = TransformerStep(shape);
    EXPECT_EQ(s.op_names.size(), s.step.ops.size()) << shape.name;
    EXPECT_EQ(Simulate(s.step, core::Machine(), core::Plan()).refusal, "") << shape.name;
  }
}

TEST(TransformerStep, RecomputingTradesTimeForMemory) {
  TransformerShape none = Small(), selective = Small(), full = Small();
  none.recompute = Recompute::kNone;
  full.recompute = Recompute::kFull;
  EXPECT_GT(PeakOf(none), PeakOf(selective));
  EXPECT_GT(PeakOf(selective), PeakOf(full));
  EXPECT_LT(IdealOf(none), IdealOf(selective));
  EXPECT_LT(IdealOf(selective), IdealOf(full));
}

TEST(TransformerStep, OptimizerStateIsTwelveBytesPerParameter) {
  TransformerShape shape = Small();
  const core::Bytes without = PeakOf(shape);
  shape.optimizer = OptimizerState::kMovable;
  const core::Bytes parameters = 6 * 12 * 512 * 512 + 32768 * 512;
  EXPECT_EQ(PeakOf(shape) - without, 12 * parameters);
}

TEST(TransformerStep, FrozenWeightsAreNeverWritten) {
  TransformerShape shape = Small();
  shape.frozen = true;
  const NamedStep s = TransformerStep(shape);
  for (const core::StepAccess& access : s.step.accesses) {
    EXPECT_FALSE(access.write && s.step.buffers[access.buffer].persistent);
  }
}

TEST(TransformerStep, RanksShareParametersAndGatherThemForEachPass) {
  TransformerShape shape = Small();
  shape.optimizer = OptimizerState::kMovable;
  const core::Bytes whole = PeakOf(shape);
  shape.ranks = 4;
  EXPECT_LT(PeakOf(shape), whole);
  size_t gathers = 0;
  for (const std::string& name : TransformerStep(shape).op_names) gathers += name == "gather";
  EXPECT_EQ(gathers, 2 * (6 * 4 + 1u));  // forward and backward, four matrices a layer and the head
}

TEST(TransformerStep, LengthsVaryBySeedAndRepeatForOne) {
  TransformerShape shape = Small();
  shape.micro_batches = 4;
  shape.variable_length = true;
  const std::string once = StepTraceText(TransformerStep(shape), "a test");
  EXPECT_EQ(once, StepTraceText(TransformerStep(shape), "a test"));
  shape.seed = 2;
  EXPECT_NE(once, StepTraceText(TransformerStep(shape), "a test"));
}

TEST(TransformerStep, ReadsBackFromItsTrace) {
  const NamedStep s = TransformerStep(Small());
  NamedStep again;
  std::string error;
  const std::string text = StepTraceText(s, "a test");
  ASSERT_TRUE(ParseStepTrace(text, &again, &error)) << error;
  EXPECT_EQ(StepTraceText(again, "a test"), text);
}

}  // namespace
}  // namespace tidemark::steps
