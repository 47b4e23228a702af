// The written-down steps run, and have what makes them hard for a planner.

#include "tests/step/model_step.h"

#include <gtest/gtest.h>

#include "tests/step/simulator.h"

namespace tidemark::steps {
namespace {

core::Bytes KeptBytes(const core::Step& step) {
  core::Bytes kept = 0;
  for (const core::StepBuffer& buffer : step.buffers) kept += buffer.persistent ? buffer.bytes : 0;
  return kept;
}

uint32_t UsesOf(const core::Step& step, core::BufferIndex buffer) {
  uint32_t uses = 0;
  for (const core::StepAccess& access : step.accesses) uses += access.buffer == buffer ? 1 : 0;
  return uses;
}

TEST(ModelStep, EveryOneIsAStepThatRuns) {
  for (const NamedStep& s : ModelSteps()) {
    size_t at = 0;
    EXPECT_EQ(s.step.Validate(&at), nullptr) << s.name << " at " << at;
    EXPECT_EQ(s.op_names.size(), s.step.ops.size()) << s.name;
    EXPECT_EQ(Simulate(s.step, core::Machine(), core::Plan()).refusal, "") << s.name;
  }
}

TEST(ModelStep, NearlyAllBytesOfTablesUnetStreamedWeightsAndExpertsOutliveTheStep) {
  for (const NamedStep& s :
       {EmbeddingTablesStep(), AveragedUnetStep(), StreamedWeightsStep(), SkewedExpertsStep()}) {
    EXPECT_GT(KeptBytes(s.step), LivePeak(s.step) / 10 * 7) << s.name;
  }
}

TEST(ModelStep, AStageHoldsWhatFourMicroBatchesSave) {
  const NamedStep s = PipelineStageStep();
  const core::Bytes saved = 6 * 14 * 2 * core::Bytes{2048} * 4096;  // of one
  EXPECT_GT(LivePeak(s.step), KeptBytes(s.step) + 4 * saved);
  EXPECT_LT(LivePeak(s.step), KeptBytes(s.step) + 5 * saved);
}

TEST(ModelStep, ABucketIsUsedByFourLayersAndByAdam) {
  const NamedStep s = OptimizerBucketsStep();
  for (core::BufferIndex bucket = 48; bucket < 54; ++bucket) EXPECT_EQ(UsesOf(s.step, bucket), 17u);
}

TEST(ModelStep, TablesAreUsedTwiceInOppositeOrder) {
  const NamedStep s = EmbeddingTablesStep();
  for (core::BufferIndex table = 0; table < 26; ++table) EXPECT_EQ(UsesOf(s.step, table), 2u);
  EXPECT_EQ(s.step.accesses[s.step.ops[s.step.ops.size() - 1].first_access].buffer, 0u);
}

TEST(ModelStep, TheGraphIsUsedByHalfOfAllOperationsOrMore) {
  const NamedStep s = WholeGraphStep();
  EXPECT_GE(UsesOf(s.step, 4) * 9 / 4, s.step.ops.size());
}

}  // namespace
}  // namespace tidemark::steps
