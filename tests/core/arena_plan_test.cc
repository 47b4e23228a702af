// What a job whose requests recur notices of planned places: chunks stop moving, and nothing breaks
// when it does something else.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/core/arena_model.h"

namespace tidemark::core {
namespace {

constexpr uint32_t kRequests = 440;
constexpr uint32_t kNoneOdd = ~uint32_t{0};

struct Job {
  explicit Job(uint32_t seed_of_all, ChunkIndex capacity, ChunkIndex host = 0,
               uint32_t slack_permille = 20)
      : model(8192, capacity, host, {slack_permille}), seed(seed_of_all) {
    model.faults = false;
  }
  // Chunks that were moved in a period.
  uint64_t Period(uint32_t odd = kNoneOdd) {
    const uint64_t before = model.counters().stitched;
    model.Period(seed, odd);
    model.Walk();
    EXPECT_EQ(model.broken(), "") << "seed " << seed;
    return model.counters().stitched - before;
  }
  uint64_t Periods(int count) {
    uint64_t moved = 0;
    for (int i = 0; i < count; ++i) moved += Period();
    return moved;
  }
  // Three periods whose requests all get held places, in the memory that is there.
  void HeldPeriods() {
    const uint64_t held = model.held();
    const uint64_t mapped = model.mapped();
    Periods(3);
    EXPECT_GE(model.held(), held + 3 * kRequests) << "every request of three periods";
    EXPECT_EQ(model.counters().stitched, 0u);
    EXPECT_EQ(model.mapped(), mapped) << "following a plan takes no memory";
  }
  ArenaModel model;
  uint32_t seed;
};

class RecurringJob : public testing::TestWithParam<uint32_t> {};

TEST_P(RecurringJob, MovesNoChunksOnceItsPlanIsFollowed) {
  Job job(GetParam(), 4096);
  const uint64_t first = job.Periods(3);
  if (first == 0) GTEST_SKIP() << "these sizes need no moves without a plan";
  job.Periods(6);
  const uint64_t planned = job.model.counters().planned;
  EXPECT_EQ(job.Periods(5), 0u);
  EXPECT_GT(job.model.counters().planned, planned);
}

// State that is made anew before the old one is freed lives longer than a period.
TEST_P(RecurringJob, MovesNoChunksWhenItsStateOutlivesAPeriod) {
  Job job(GetParam(), 4096);
  job.model.states = 40;
  const uint64_t first = job.Periods(3);
  if (first == 0) GTEST_SKIP() << "these sizes need no moves without a plan";
  job.Periods(8);
  const uint64_t planned = job.model.counters().planned;
  if (job.Period() != 0 && job.model.counters().planned == planned) {
    GTEST_SKIP() << "places for this state do not fit into the slack";
  }
  EXPECT_EQ(job.Periods(5), 0u);
  EXPECT_GT(job.model.counters().planned, planned + 5 * 30) << "state has no place in the plan";
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, GoesOnWhenARequestDiffers) {
  Job job(GetParam(), 4096);
  std::mt19937 random(GetParam());
  for (int i = 0; i < 60; ++i) job.Period(random() % 3 == 0 ? random() % kRequests : kNoneOdd);
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, TakesItsPlanUpAgainAfterARequestThatDiffered) {
  Job job(GetParam(), 4096);
  job.Periods(9);
  if (job.model.counters().planned == 0) GTEST_SKIP() << "these sizes need no plan";
  job.Period(kRequests / 2);
  const uint64_t planned = job.model.counters().planned;
  job.Periods(4);
  EXPECT_GT(job.model.counters().planned, planned + kRequests);
}

TEST_P(RecurringJob, LearnsItsNextPeriodWhenItChangesForGood) {
  Job job(GetParam(), 4096);
  job.Periods(12);
  job.seed += 1000;
  const uint64_t moved = job.Periods(3);
  job.Periods(20);
  EXPECT_LE(job.Periods(3), moved) << "it is as if it had not been learned";
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, KeepsItsPromisesWhenMemoryIsShort) {
  for (const ChunkIndex capacity : {100, 250, 400}) {
    Job job(GetParam(), capacity, GetParam() % 2 == 0 ? 0 : 150);
    job.model.faults = true;
    job.model.states = GetParam() % 3 * 10;
    std::mt19937 random(GetParam());
    for (int i = 0; i < 12; ++i) {
      job.Period();
      if (i % 3 == 2) job.model.FailCall(job.model.calls() + random() % 50);
    }
    job.model.Finish();
    EXPECT_EQ(job.model.broken(), "") << "capacity " << capacity;
  }
}

TEST_P(RecurringJob, GetsItsPlacesWithoutASearchOnceItsPlanWasFollowed) {
  Job job(GetParam(), 4096);
  job.Periods(9);
  if (job.model.counters().planned == 0) GTEST_SKIP() << "these sizes need no plan";
  job.Periods(4);
  const uint64_t held = job.model.held();
  job.Periods(3);
  EXPECT_GE(job.model.held(), held + 3 * kRequests) << "every request of three periods";
}

TEST_P(RecurringJob, LeavesItsHeldPlacesAtAnyRequest) {
  Job job(GetParam(), 4096);
  job.model.states = GetParam() % 3 * 10;
  job.Periods(13);
  if (job.model.counters().planned == 0) GTEST_SKIP() << "these sizes need no plan";
  for (uint32_t odd = GetParam() % 9; odd < kRequests; odd += 9) {
    job.Period(odd);
    job.Periods(2);  // until they are held again
    if (odd % 2 == 0) job.model.WalkChunks();
  }
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

// With so much slack no chunk has to move, and places recur by themselves.
constexpr uint32_t kPlenty = 1000;

TEST_P(RecurringJob, GetsTheSamePlacesWithoutASearchWhereNothingHasToMove) {
  Job job(GetParam(), 4096, 0, kPlenty);
  job.Periods(12);
  job.HeldPeriods();
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

// State that is made anew in each period goes from place to place, and no place recurs by itself.
TEST_P(RecurringJob, PacksItsRequestsAroundWhatLivesWhereNothingHasToMove) {
  Job job(GetParam(), 4096, 0, kPlenty);
  job.model.states = 40;
  job.Periods(10);
  const uint64_t mapped = job.model.mapped();
  job.Periods(20);
  const uint64_t planned = job.model.counters().planned;
  job.HeldPeriods();
  EXPECT_GE(job.model.counters().planned, planned + 3 * (kRequests + 30)) << "and state, too";
  EXPECT_EQ(job.model.mapped(), mapped) << "following a plan takes no memory";
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, LeavesWhatItPackedAroundToOthers) {
  Job first(GetParam(), 4096, 0, kPlenty);
  first.model.states = 40;
  first.Periods(12);
  Job job(GetParam(), first.model.mapped(), 0, kPlenty);  // there is nothing else
  job.model.states = 40;
  job.Periods(20);
  job.model.TakeSlabs();
  EXPECT_EQ(job.model.counters().stitched, 0u) << "no chunk had to move for it";
  job.Periods(30);
  const uint64_t held = job.model.held();
  job.Period();
  EXPECT_GE(job.model.held(), held + kRequests) << "a plan is followed again afterwards";
}

TEST_P(RecurringJob, LeavesItsMemoryToOthersWhereNothingHasToMove) {
  Job job(GetParam(), 4096, 0, kPlenty);
  job.Periods(14);
  const uint64_t mapped = job.model.mapped();
  job.model.TakeAllMapped();
  EXPECT_EQ(job.model.mapped(), mapped) << "what the plan kept was free for another buffer";
  job.Periods(14);
  const uint64_t held = job.model.held();
  job.Period();
  EXPECT_GE(job.model.held(), held + kRequests) << "places are held again afterwards";
}

// As where threads take turns at one allocator: each for a few steps.
TEST_P(RecurringJob, TiresOfPlacesThatRecurForAFewPeriodsOnly) {
  Job job(GetParam(), 4096, 0, kPlenty);
  std::mt19937 random(GetParam());
  for (int turn = 0; turn < 60; ++turn) {
    job.seed = GetParam() + turn % 2 * 1000;
    for (uint32_t left = 3 + random() % 4; left > 0; --left) job.model.Period(job.seed, kNoneOdd);
  }
  EXPECT_LE(job.model.holds_begun(), 8u) << "it looked for such places again and again";
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, LeavesPlacesThatRecurredAtAnyRequest) {
  Job job(GetParam(), 4096, 0, kPlenty);
  job.model.states = GetParam() % 3 * 10;
  job.Periods(14);
  for (uint32_t odd = GetParam() % 9; odd < kRequests; odd += 9) {
    job.Period(odd);
    job.Periods(2);
    if (odd % 2 == 0) job.model.WalkChunks();
  }
  job.model.Finish();
  EXPECT_EQ(job.model.broken(), "");
}

TEST_P(RecurringJob, KeepsItsPromisesWhateverHappensWhilePlacesRecur) {
  for (const uint32_t disturbance : {7, 1500}) {
    Job job(GetParam(), 4096, GetParam() % 2 == 0 ? 0 : 150, kPlenty);
    job.model.states = GetParam() % 3 * 10;
    std::mt19937 random(GetParam());
    job.Periods(14);
    job.model.disturbance = disturbance;
    job.model.faults = GetParam() % 4 < 2;
    for (int i = 0; i < 40; ++i) {
      job.Period(random() % 8 == 0 ? random() % kRequests : kNoneOdd);
      if (job.model.faults && i % 3 == 0) job.model.FailCall(job.model.calls() + random() % 50);
    }
    job.model.Finish();
    EXPECT_EQ(job.model.broken(), "") << "disturbance " << disturbance;
  }
}

// TIDEMARK_ARENA_PERIODS: how many, for longer runs.
TEST_P(RecurringJob, KeepsItsPromisesWhateverHappensWhilePlacesAreHeld) {
  const char* text = std::getenv("TIDEMARK_ARENA_PERIODS");
  const int periods = text == nullptr ? 60 : std::atoi(text);
  for (const uint32_t disturbance : {7, 100, 1500}) {
    Job job(GetParam(), 4096, GetParam() % 2 == 0 ? 0 : 150);
    job.model.states = GetParam() % 3 * 10;
    std::mt19937 random(GetParam());
    job.Periods(12);
    const uint64_t held = job.model.held();
    job.model.disturbance = disturbance;
    job.model.faults = GetParam() % 4 < 2;
    for (int i = 0; i < periods; ++i) {
      job.Period(random() % 8 == 0 ? random() % kRequests : kNoneOdd);
      if (job.model.faults && i % 3 == 0) job.model.FailCall(job.model.calls() + random() % 50);
    }
    if (disturbance == 1500 && held > kRequests) {
      EXPECT_GT(job.model.held(), held) << "places are held again after a disturbance";
    }
    job.model.Finish();
    EXPECT_EQ(job.model.broken(), "") << "disturbance " << disturbance;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RecurringJob, testing::Range(1u, 9u));

}  // namespace
}  // namespace tidemark::core
