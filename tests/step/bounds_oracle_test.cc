// The lower bounds against the exact search, on thousands of small random steps, and against
// themselves where more of something can only help.

#include <gtest/gtest.h>

#include <string>

#include "core/bounds.h"
#include "tests/step/exact_search.h"
#include "tests/step/model_step.h"
#include "tests/step/random_step.h"
#include "tests/step/simulator.h"
#include "tests/step/transformer_step.h"

namespace tidemark::steps {
namespace {

constexpr uint32_t kMuchEffort = 16;

struct OracleCase {
  const char* name;
  RandomStepShape shape;
  int instances;
  bool loss, safepoint, host;
  core::Bytes least_host = 6;
};

class AgainstExactSearch : public ::testing::TestWithParam<OracleCase> {
 protected:
  RandomStep Make(int seed) {
    const OracleCase& c = GetParam();
    RandomStep random(static_cast<uint64_t>(seed), c.shape);
    core::Machine& machine = random.machine;
    if (c.loss) machine.out_rate_duplex *= 0.75;
    if (c.loss) machine.in_rate_duplex *= 0.5;
    if (c.safepoint) machine.safepoint = 3;
    if (c.host) machine.host_budget = c.least_host + random.Below(12);
    return random;
  }
};

TEST_P(AgainstExactSearch, NoPlanIsFasterThanTheTimeBound) {
  int compared = 0;
  for (int seed = 0; seed < GetParam().instances; ++seed) {
    const RandomStep random = Make(seed);
    const ExactAnswer exact = ExactSearch(random.step, random.machine, ExactGoal::kTime, 20'000);
    if (!exact.finished || !exact.feasible) continue;
    ++compared;
    const core::TimeBound bound = core::FindTimeBound(
        random.step, random.machine, {core::Granularity::kBoundary, /*prices=*/true});
    ASSERT_EQ(bound.outcome, core::BoundOutcome::kBound) << "seed " << seed;
    ASSERT_LE(static_cast<double>(bound.time), exact.value + 1e-3) << "seed " << seed;
    const core::TimeBound sought = core::FindTimeBound(
        random.step, random.machine, {core::Granularity::kBoundary, /*prices=*/true, kMuchEffort});
    ASSERT_LE(static_cast<double>(sought.time), exact.value + 1e-3) << "seed " << seed;
    const core::TimeBound any = core::FindTimeBound(random.step, random.machine,
                                                    {core::Granularity::kAnyTime, /*prices=*/true});
    ASSERT_LE(static_cast<double>(any.time), exact.value + 1e-3) << "seed " << seed;
  }
  EXPECT_GT(compared, GetParam().instances / 2);
}

TEST_P(AgainstExactSearch, NoPlanMovesLessThanTheTrafficBound) {
  int compared = 0;
  for (int seed = 0; seed < GetParam().instances; ++seed) {
    const RandomStep random = Make(seed);
    const core::TrafficBound bound = core::FindTrafficBound(random.step, random.machine);
    const struct {
      ExactGoal goal;
      core::Bytes least;
    } goals[] = {{ExactGoal::kBytesOut, bound.bytes_out},
                 {ExactGoal::kBytesIn, bound.bytes_in},
                 {ExactGoal::kBytes, bound.bytes_out + bound.bytes_in}};
    for (const auto& [goal, least] : goals) {
      const ExactAnswer exact = ExactSearch(random.step, random.machine, goal, 20'000);
      if (!exact.finished || !exact.feasible) continue;
      ++compared;
      ASSERT_LE(static_cast<double>(least), exact.value + 1e-6) << "seed " << seed;
    }
  }
  EXPECT_GT(compared, GetParam().instances);
}

INSTANTIATE_TEST_SUITE_P(
    SmallSteps, AgainstExactSearch,
    ::testing::Values(OracleCase{"Plain", {5, 4, 0, 1}, 1500, false, false, false},
                      OracleCase{"InParts", {5, 4, 0, 2}, 150, false, false, false},
                      OracleCase{"Longer", {9, 4, 0, 1}, 200, false, false, false},
                      OracleCase{"DuplexLoss", {5, 4, 0, 1}, 500, true, false, false},
                      OracleCase{"Safepoints", {5, 4, 0, 1}, 300, false, true, false},
                      OracleCase{"HostBudget", {5, 4, 0, 1}, 500, false, false, true},
                      OracleCase{"ShortHost", {5, 4, 0.3, 1}, 300, false, false, true, 2},
                      OracleCase{"Persistent", {4, 3, 0.5, 1}, 300, false, false, false},
                      OracleCase{"PersistentLoss", {4, 3, 0.5, 1}, 150, true, false, true},
                      OracleCase{"Everything", {4, 3, 0.2, 1}, 150, true, true, true}),
    [](const ::testing::TestParamInfo<OracleCase>& info) { return std::string(info.param.name); });

core::Nanoseconds TimeOf(const RandomStep& random) {
  const core::TimeBound bound = core::FindTimeBound(random.step, random.machine);
  EXPECT_EQ(bound.outcome, core::BoundOutcome::kBound) << bound.reason;
  return bound.time;
}

constexpr core::Granularity kBoundary = core::Granularity::kBoundary;

double TimeWith(const core::TimeBoundOptions& options, const core::Step& step,
                const core::Machine& machine) {
  const core::TimeBound bound = core::FindTimeBound(step, machine, options);
  EXPECT_EQ(bound.outcome, core::BoundOutcome::kBound) << bound.reason;
  return static_cast<double>(bound.time);
}

// Optimizer state returns and activations leave at once, in a window that either fits into alone.
TEST(PriceBound, FindsMoreThanWindowsWhereTheDirectionsCompete) {
  TransformerShape shape;
  shape.layers = 16;
  shape.batch = 4;
  shape.micro_batches = 4;
  shape.fused_attention = true;
  shape.optimizer = OptimizerState::kMovable;
  shape.variable_length = true;
  const NamedStep net = TransformerStep(shape);
  core::Machine machine;
  machine.device_budget = LivePeak(net.step) / 5 * 3;
  SetRates(6e9, 6e9, &machine);
  machine.in_rate_duplex = 3e9;
  EXPECT_GT(TimeWith({kBoundary, /*prices=*/true}, net.step, machine),
            TimeWith({kBoundary}, net.step, machine) * 1.01);
}

// Two passes over state at the end of the step, in few and short operations.
TEST(PriceBound, SeesEachOperationOfAShortStep) {
  const NamedStep net = AveragedUnetStep();
  core::Machine machine;
  machine.device_budget = LivePeak(net.step) / 2;
  SetRates(6e9, 6e9, &machine);
  EXPECT_GT(TimeWith({kBoundary, /*prices=*/true}, net.step, machine),
            TimeWith({kBoundary}, net.step, machine) * 1.02);
}

// Weights are read sixteen times, in hundreds of operations: a few moments blur that, and prices
// for every operation would take too long.
TEST(PriceBound, SeesTheManyMomentsOfAPipelineStage) {
  const NamedStep net = PipelineStageStep();
  core::Machine machine;
  machine.device_budget = LivePeak(net.step) / 5;
  SetRates(12e9, 12e9, &machine);
  EXPECT_GT(TimeWith({kBoundary, /*prices=*/true}, net.step, machine),
            TimeWith({kBoundary}, net.step, machine) * 1.05);
}

// Some hundred operations, with gaps that are long together: prices for each of them take time.
TEST(PriceBound, IsTighterWithMoreEffort) {
  const NamedStep net = OptimizerBucketsStep();
  core::Machine machine;
  machine.device_budget = LivePeak(net.step) / 10 * 3;
  SetRates(6e9, 6e9, &machine);
  EXPECT_GT(TimeWith({kBoundary, /*prices=*/true, kMuchEffort}, net.step, machine),
            TimeWith({kBoundary, /*prices=*/true}, net.step, machine) * 1.005);
}

class BoundsOfLargerSteps : public ::testing::TestWithParam<int> {};

TEST_P(BoundsOfLargerSteps, NeverRiseWithTheBudgetOrTheRates) {
  RandomStep random(static_cast<uint64_t>(GetParam()), {40, 30, 0.3, 3});
  random.machine.out_rate_duplex *= 0.9;
  random.machine.in_rate_duplex *= 0.6;
  random.machine.safepoint = GetParam() % 2;
  const core::Nanoseconds tight = TimeOf(random);
  core::Machine& machine = random.machine;
  core::Nanoseconds last = tight;
  const core::Bytes budget = machine.device_budget;
  for (int more = 1; more <= 4; ++more) {
    machine.device_budget = budget + 5 * static_cast<core::Bytes>(more);
    const core::Nanoseconds now = TimeOf(random);
    EXPECT_LE(now, last);
    last = now;
  }
  machine.device_budget = budget;
  machine.in_rate *= 2;
  EXPECT_LE(TimeOf(random), tight);
  machine.in_rate_duplex *= 2;
  machine.out_rate *= 2;
  machine.out_rate_duplex *= 2;
  EXPECT_LE(TimeOf(random), tight);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BoundsOfLargerSteps, ::testing::Range(0, 30));

}  // namespace
}  // namespace tidemark::steps
