// How good plans are, on steps small enough for the exact search, and what a plan that exists is
// worth when there is more of anything.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/bounds.h"
#include "core/planner.h"
#include "tests/step/any_step.h"
#include "tests/step/exact_search.h"
#include "tests/step/model_step.h"
#include "tests/step/random_step.h"
#include "tests/step/simulator.h"
#include "tests/step/step_builder.h"

namespace tidemark::core {
namespace {

// A kind of small steps. Sizes of 0: from 4 to 9 operations and 3 to 7 buffers.
struct Family {
  const char* name;
  steps::RandomStepShape shape;
  int instances;
  bool is_lossy, has_safepoints, is_host_limited;
};

class PlannerAgainstExactSearch : public testing::TestWithParam<Family> {
 protected:
  static steps::RandomStep Make(uint64_t seed) {
    const Family& family = GetParam();
    steps::RandomStepShape shape = family.shape;
    if (shape.ops == 0) shape.ops = static_cast<uint32_t>(4 + seed % 6);
    if (shape.buffers == 0) shape.buffers = static_cast<uint32_t>(3 + seed / 6 % 5);
    steps::RandomStep random(seed, shape);
    Machine& machine = random.machine;
    if (family.is_lossy) machine.out_rate_duplex *= 0.75;
    if (family.is_lossy) machine.in_rate_duplex *= 0.5;
    if (family.has_safepoints) machine.safepoint = 3;
    if (family.is_host_limited) machine.host_budget = 6 + random.Below(12);
    return random;
  }
};

// Plans predict whole nanoseconds, which is some percent of these steps.
TEST_P(PlannerAgainstExactSearch, IsWithinOnePercentOnEveryStep) {
  constexpr double kRounding = 0.501;
  int compared = 0;
  for (int k = 0; k < GetParam().instances; ++k) {
    const uint64_t seed = static_cast<uint64_t>(k);
    const steps::RandomStep random = Make(seed);
    const auto exact =
        steps::ExactSearch(random.step, random.machine, steps::ExactGoal::kTime, 3'000);
    if (!exact.finished || !exact.feasible) continue;
    Plan plan;
    ASSERT_EQ(MakePlan(random.step, random.machine, {}, &plan), PlanOutcome::kPlanned)
        << "seed " << seed;
    const auto time = static_cast<double>(plan.step_time);
    EXPECT_LE(time, exact.value * 1.01 + kRounding) << "seed " << seed;
    // With persistent buffers the search has an upper bound only, see exact_search.h.
    if (GetParam().shape.persistent == 0) {
      EXPECT_GE(time, exact.value - kRounding) << "seed " << seed << ": faster than possible";
    }
    ++compared;
  }
  EXPECT_GE(compared, GetParam().instances / 3);
}

INSTANTIATE_TEST_SUITE_P(
    SmallSteps, PlannerAgainstExactSearch,
    testing::Values(Family{"Mixed", {0, 0, 0, 2}, 120, false, false, false},
                    Family{"MixedLoss", {0, 0, 0, 2}, 60, true, false, false},
                    Family{"InParts", {6, 5, 0, 3}, 40, false, false, false},
                    Family{"Longer", {10, 6, 0, 1}, 40, false, false, false},
                    Family{"Safepoints", {8, 5, 0, 1}, 40, false, true, false},
                    Family{"SafepointsInParts", {6, 4, 0, 2}, 40, true, true, false},
                    Family{"HostBudget", {8, 5, 0, 1}, 40, false, false, true},
                    Family{"HostBudgetInParts", {6, 4, 0, 2}, 40, false, true, true},
                    Family{"Persistent", {7, 5, 0.5, 1}, 40, false, false, false},
                    Family{"PersistentLoss", {4, 3, 0.5, 1}, 60, true, false, true},
                    Family{"Everything", {6, 4, 0.2, 1}, 40, true, true, true}),
    [](const testing::TestParamInfo<Family>& info) { return std::string(info.param.name); });

// All operations use one large buffer, and of the rest so little fits that a sweep makes many short
// windows and leaves one link idle while the other is late.
TEST(PlannerQualityTest, BalancesTheLinksWhereOperationsShareOneLargeBuffer) {
  const steps::NamedStep graph = steps::WholeGraphStep();
  for (const double gb_per_s : {6, 12}) {
    Machine machine;
    machine.device_budget = steps::LivePeak(graph.step) / 5;
    steps::SetRates(gb_per_s * 1e9, gb_per_s * 1e9, &machine);
    const TimeBound bound =
        FindTimeBound(graph.step, machine, {Granularity::kBoundary, /*prices=*/true});
    Plan plan;
    ASSERT_EQ(MakePlan(graph.step, machine, {}, &plan), PlanOutcome::kPlanned);
    EXPECT_GE(static_cast<double>(bound.time), 0.93 * static_cast<double>(plan.step_time));
  }
}

// A few buffers of many layers' gradients and state: one link idles while the other is late, in a
// step that is too long for prices of each operation.
TEST(PlannerQualityTest, BalancesTheLinksWhereLayersShareLargeBuckets) {
  const steps::NamedStep buckets = steps::OptimizerBucketsStep();
  Machine machine;
  machine.device_budget = steps::LivePeak(buckets.step) / 5 * 3;
  machine.safepoint = 20'000;
  steps::SetRates(6e9, 6e9, &machine);
  const TimeBound bound =
      FindTimeBound(buckets.step, machine, {Granularity::kBoundary, /*prices=*/true});
  Plan plan;
  ASSERT_EQ(MakePlan(buckets.step, machine, {}, &plan), PlanOutcome::kPlanned);
  EXPECT_GE(static_cast<double>(bound.time), 0.95 * static_cast<double>(plan.step_time));
}

// The same beside a host that holds a twentieth more than what must be away, less than a bucket's.
TEST(PlannerQualityTest, BalancesTheLinksOverLargeBucketsBesideAShortHost) {
  const steps::NamedStep buckets = steps::OptimizerBucketsStep();
  const Bytes percent = steps::LivePeak(buckets.step) / 100;
  Machine machine;
  machine.device_budget = 75 * percent;
  machine.host_budget = 30 * percent;
  machine.safepoint = 20'000;
  steps::SetRates(12e9, 12e9, &machine);
  const TimeBound bound =
      FindTimeBound(buckets.step, machine, {Granularity::kBoundary, /*prices=*/true});
  Plan plan;
  ASSERT_EQ(MakePlan(buckets.step, machine, {}, &plan), PlanOutcome::kPlanned);
  EXPECT_LE(plan.host_peak, machine.host_budget);
  EXPECT_GE(static_cast<double>(bound.time), 0.95 * static_cast<double>(plan.step_time));
}

// One step of a generator and a discriminator, 20 layers each: three passes through the second, the
// optimizer after each of the two.
Step AdversarialStep() {
  constexpr int kLayers = 20;
  constexpr Bytes kActivation = 96 * kMiB, kWeights = 40 * kMiB;
  steps::StepBuilder step;
  struct Layer {
    BufferIndex weights, gradient, state;
  };
  struct Used {
    BufferIndex in, out;
    const Layer* layer;
  };
  std::vector<Layer> nets[2];
  for (std::vector<Layer>& net : nets) {
    for (int i = 0; i < kLayers; ++i) net.push_back({step.Persistent(kWeights), 0, 0});
    for (Layer& layer : net) layer.gradient = step.Persistent(kWeights);
    for (Layer& layer : net) layer.state = step.Persistent(2 * kWeights);
  }
  const auto make = [&](const steps::StepBuilder::Buffers& reads) {
    const BufferIndex made = step.Transient(kActivation);
    step.Op(10'000, reads, {made});
    return made;
  };
  const auto forward = [&](BufferIndex x, const std::vector<Layer>& net, std::vector<Used>* tape) {
    for (const Layer& layer : net) {
      const BufferIndex y = step.Transient(kActivation);
      step.Op(2'000'000, {x, layer.weights}, {y});
      tape->push_back({x, y, &layer});
      x = y;
    }
    return x;
  };
  const auto backward = [&](BufferIndex gradient, const std::vector<Used>& tape, bool learns) {
    for (auto used = tape.rbegin(); used != tape.rend(); ++used) {
      const BufferIndex next = step.Transient(kActivation);
      steps::StepBuilder::Buffers writes = {next};
      if (learns) writes.push_back(used->layer->gradient);
      step.Op(4'000'000, {gradient, used->in, used->out, used->layer->weights}, writes);
      gradient = next;
    }
    return gradient;
  };
  const auto optimize = [&](const std::vector<Layer>& net) {
    for (const Layer& l : net) {
      step.Op(167'772, {l.weights, l.gradient, l.state}, {l.weights, l.state});
    }
  };
  std::vector<Used> tapes[4];
  const BufferIndex fake = forward(make({}), nets[0], &tapes[0]);
  (void)backward(make({forward(fake, nets[1], &tapes[1])}), tapes[1], true);
  (void)backward(make({forward(make({}), nets[1], &tapes[2])}), tapes[2], true);
  optimize(nets[1]);
  const BufferIndex judged = make({forward(fake, nets[1], &tapes[3])});
  (void)backward(backward(judged, tapes[3], false), tapes[0], true);
  optimize(nets[0]);
  return step.Take();
}

// Parts of one buffer that leave and return together, but whose copies stand apart in the queues,
// must not be copied as one again.
TEST(PlannerQualityTest, ReplanningWithoutAChangeIsNotSlower) {
  const Step step = AdversarialStep();
  for (const double gb_per_s : {6, 12, 25}) {
    for (const int percent : {60, 40, 30}) {
      Machine machine;
      machine.device_budget = steps::LivePeak(step) / 100 * static_cast<Bytes>(percent);
      steps::SetRates(gb_per_s * 1e9, gb_per_s * 1e9, &machine);
      machine.safepoint = 20'000;
      Plan before, after;
      ASSERT_EQ(MakePlan(step, machine, {}, &before), PlanOutcome::kPlanned);
      ASSERT_EQ(Replan(step, machine, before, &after), PlanOutcome::kPlanned);
      EXPECT_LE(after.step_time, before.step_time + 1) << percent << " %, " << gb_per_s << " GB/s";
    }
  }
}

// What a plan takes of the host beyond what is away costs little to do without: copies made ahead,
// kept for later, or of what has come back before it is used.
TEST(PlannerQualityTest, AShortHostCostsLittleWhereItHoldsWhatIsAway) {
  const Step step = AdversarialStep();
  Machine machine;
  machine.device_budget = steps::LivePeak(step) / 100 * 75;
  steps::SetRates(12e9, 12e9, &machine);
  machine.safepoint = 20'000;
  Plan free, limited;
  ASSERT_EQ(MakePlan(step, machine, {}, &free), PlanOutcome::kPlanned);
  for (const int percent : {50, 30}) {
    machine.host_budget = steps::LivePeak(step) / 100 * static_cast<Bytes>(percent);
    ASSERT_EQ(MakePlan(step, machine, {}, &limited), PlanOutcome::kPlanned);
    EXPECT_LE(limited.host_peak, machine.host_budget);
    EXPECT_LE(static_cast<double>(limited.step_time), 1.05 * static_cast<double>(free.step_time))
        << percent << " %";
  }
}

// Weights that are only read go round; the host holds copies of so much of each as leaves, and of
// no more.
TEST(PlannerQualityTest, WeightsThatAreOnlyReadStreamFromAHostThatHoldsAThirdOfThem) {
  steps::StepBuilder step;
  steps::StepBuilder::Buffers weights;
  for (int i = 0; i < 32; ++i) weights.push_back(step.Persistent((i % 2 == 0 ? 64 : 384) * kMiB));
  for (int token = 0; token < 4; ++token) {
    BufferIndex x = step.Transient(8 * kMiB);
    step.Op(5'000, {}, {x});
    for (const BufferIndex used : weights) {
      const BufferIndex y = step.Transient(8 * kMiB);
      step.Op(150'000, {x, used}, {y});
      x = y;
    }
  }
  Machine machine;
  machine.device_budget = steps::LivePeak(step.step()) / 100 * 75;
  machine.host_budget = steps::LivePeak(step.step()) / 100 * 30;
  steps::SetRates(12e9, 12e9, &machine);
  Plan plan;
  ASSERT_EQ(MakePlan(step.step(), machine, {}, &plan), PlanOutcome::kPlanned) << plan.reason;
  EXPECT_LE(plan.host_peak, machine.host_budget);
  const TimeBound bound = FindTimeBound(step.step(), machine);
  EXPECT_LE(static_cast<double>(plan.step_time), 1.15 * static_cast<double>(bound.time));
}

// A plan that exists is never given up for a slower one.
TEST(PlannerQualityTest, ReplanningWithMoreOfAnythingIsNeverSlower) {
  int compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    const Step step = steps::AnyStep(random, 25, 20);
    Machine machine;
    machine.min_bytes = 0;
    machine.device_budget = (steps::WorkingSetFloor(step, machine) + steps::LivePeak(step)) / 2;
    Plan before;
    if (MakePlan(step, machine, {}, &before) != PlanOutcome::kPlanned) continue;
    for (int round = 0; round < 4; ++round) {
      switch (random() % 3) {
        case 0:
          machine.device_budget += machine.device_budget / 10;
          break;
        case 1:
          steps::SetRates(machine.out_rate * 1.2, machine.in_rate, &machine);
          break;
        default:
          steps::SetRates(machine.out_rate, machine.in_rate * 1.2, &machine);
      }
      Plan after;
      ASSERT_EQ(Replan(step, machine, before, &after), PlanOutcome::kPlanned);
      EXPECT_LE(after.step_time, before.step_time + 1) << "seed " << seed;
      std::swap(before, after);
      ++compared;
    }
  }
  EXPECT_GE(compared, 120);
}

}  // namespace
}  // namespace tidemark::core
