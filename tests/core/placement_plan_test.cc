// What a plan of places says of the requests of a job that recurs: what becomes of those that are
// live, and where those that come will lie.

#include "core/placement_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "tests/core/counting_backend.h"

namespace tidemark::core {
namespace {

struct Asked {
  uint32_t units;
  uint32_t life;
};

// A job that makes the same requests again and again, moves a chunk in each period until its plan
// is followed, and has an owner that agrees to any plan within `room` units.
class Job {
 public:
  Job(std::vector<Asked> requests, Bytes room) : requests_(std::move(requests)), room_(room) {
    EXPECT_TRUE(plan.Start());
  }

  // The next request; where the plan wants it.
  Bytes Next() {
    for (size_t i = 0; i < alive_.size(); ++i) {
      if (alive_[i].end != now_) continue;
      plan.Freed(alive_[i].number);
      alive_[i--] = alive_.back();
      alive_.pop_back();
    }
    const Asked& asked = requests_[now_ % requests_.size()];
    Bytes place = plan.Next(Bytes{asked.units} * kBlockBytes, 1);
    if (now_ % requests_.size() == 0 && !plan.following()) plan.NoteMoved(1);
    alive_.push_back({plan.number(), now_ + asked.life});
    ++now_;
    return place;
  }
  void Answer() {
    while (plan.asks()) plan.Pack(room_ * kBlockBytes);
    if (plan.ready()) plan.Accept();
  }
  bool RunUntil(bool (PlacementPlan::*is)() const) {
    for (size_t i = 0; i < 40 * requests_.size() && !(plan.*is)(); ++i) {
      Next();
      if (!(plan.*is)()) Answer();
    }
    return (plan.*is)();
  }
  // Of the request in hand in its period.
  size_t index() const { return (now_ - 1) % requests_.size(); }
  const std::vector<Asked>& requests() const { return requests_; }

  PlacementPlan plan;

 private:
  struct Alive {
    RequestNumber number;
    size_t end;
  };
  std::vector<Asked> requests_;
  Bytes room_;
  std::vector<Alive> alive_;
  size_t now_ = 0;
};

// The owner is asked for room within the request that ends a period: the plan's first one has not
// begun yet.
TEST(PlacementPlan, KnowsWhatBecomesOfEachRequestWhenItAsksForRoom) {
  std::vector<Asked> requests(150, Asked{8, 3});
  requests[40] = {200, 1000};  // nobody knows for how long
  requests[90] = {8, 120};
  Job job(requests, 1 << 16);
  ASSERT_TRUE(job.RunUntil(&PlacementPlan::asks));
  for (uint32_t ago = 0; ago < 150; ++ago) {
    const size_t index = (job.index() + 150 - ago) % 150;
    const PlacementPlan::Fate expected =
        index == 40 ? PlacementPlan::Fate::kIsMadeElsewhere : PlacementPlan::Fate::kIsPlaced;
    ASSERT_EQ(job.plan.FateOf(job.plan.number() - ago), expected) << "request " << index;
    const uint32_t end = requests[index].life > ago && index != 40 ? requests[index].life - ago
                                                                   : PlacementPlan::kNever;
    if (ago != 0) {
      ASSERT_EQ(job.plan.EndOf(job.plan.number() - ago), end) << "request " << index;
    }
  }
}

// Activations of up to 1,200 units with temporaries, then state that is made anew in pairs: maybe
// one of 200 units each, then such of 16 and 64 units, whose places for that moment are 160 units
// in strips.
std::vector<Asked> Training(uint32_t temporary, uint32_t largest) {
  std::vector<Asked> requests;
  for (uint32_t i = 0; i < 30; ++i) {
    requests.insert(requests.end(), {{40, 119 - 4 * i}, {temporary, 2}});
  }
  for (uint32_t i = 0; i < 60; ++i) requests.push_back({8, 1 + i % 2});
  const auto add_pair = [&](uint32_t units) {
    requests.insert(requests.end(), {{units, 0}, {units, 0}, {1, 1}});
  };
  if (largest != 0) add_pair(largest);
  for (int layer = 0; layer < 12; ++layer) add_pair(16), add_pair(64), add_pair(16);
  requests.insert(requests.end(), 4, {8, 1});
  for (Asked& asked : requests) {
    if (asked.life == 0) asked.life = static_cast<uint32_t>(requests.size()) + 2;
  }
  return requests;
}

struct Room {
  uint32_t temporary;
  uint32_t largest;
  Bytes units;
  bool has_guests;
};
// The last one is too little but for strips: other places for state can have 40 units each
// meanwhile.
constexpr Room kRooms[] = {
    {8, 200, 6000, false}, {8, 200, 4480, false}, {8, 200, 4000, true}, {120, 0, 3690, true}};

class PlanOfTraining : public testing::TestWithParam<Room> {
 protected:
  PlanOfTraining() { EXPECT_TRUE(job_.RunUntil(&PlacementPlan::begins)); }
  Job job_{Training(GetParam().temporary, GetParam().largest), GetParam().units};
};

TEST_P(PlanOfTraining, SaysAheadWhereEachRequestWillLie) {
  std::vector<Bytes> ahead;
  for (uint32_t i = 1; i < 2 * job_.requests().size(); ++i) {
    ahead.push_back(job_.plan.PlaceAhead(i));
  }
  for (const Bytes place : ahead) {
    ASSERT_NE(place, PlacementPlan::kNowhere);
    ASSERT_EQ(job_.Next(), place) << "request " << job_.index();
  }
}

// What lives for less than a period lies elsewhere in the next one only as a guest.
TEST_P(PlanOfTraining, PutsOthersInPlacesOfStateOnlyWhereRoomIsShort) {
  const size_t period = job_.requests().size();
  std::vector<Bytes> places;
  for (size_t i = 0; i < 2 * period; ++i) places.push_back(job_.Next());
  int guests = 0;
  for (size_t i = 0; i < period; ++i) {
    const Asked& asked = job_.requests()[(job_.index() + 1 + i) % period];
    guests += asked.life < period && places[i] != places[i + period];
  }
  EXPECT_EQ(guests != 0, GetParam().has_guests) << guests;
  EXPECT_LE(job_.plan.size(), GetParam().units * kBlockBytes);
}

INSTANTIATE_TEST_SUITE_P(Rooms, PlanOfTraining, testing::ValuesIn(kRooms));

TEST(PlacementPlan, BeginsWithALaterPeriodWhereItDidNotFitButNotForEver) {
  Job job(Training(8, 200), 6000);
  const size_t period = job.requests().size();
  ASSERT_TRUE(job.RunUntil(&PlacementPlan::begins));
  for (int times = 0; times < 3; ++times) {
    job.plan.Postpone();
    for (size_t i = 0; i < period; ++i) {
      ASSERT_FALSE(job.plan.following());
      job.Next();
    }
    ASSERT_TRUE(job.plan.begins()) << "with the next period";
  }
  job.plan.Postpone();
  for (size_t i = 0; i < 8 * period; ++i) {
    ASSERT_FALSE(job.plan.following());
    job.Next();
    job.Answer();
  }
  EXPECT_TRUE(job.RunUntil(&PlacementPlan::begins)) << "another one is made later";
}

// Such a job at an arena. Its sizes are 128 KiB to a unit.
class TrainingInArena {
 public:
  explicit TrainingInArena(uint32_t slack_permille) {
    EXPECT_TRUE(arena_.Init(1 << 12, backend_.Seam(), {slack_permille}));
  }

  // Chunks that moved. Request `odd` is larger than it was.
  uint64_t Step(size_t odd = ~size_t{0}) {
    const uint64_t before = arena_.counters().stitched;
    for (size_t i = 0; i < requests_.size(); ++i, ++now_) {
      while (!ends_.empty() && ends_.begin()->first <= now_) {
        arena_.Free(ends_.begin()->second);
        ends_.erase(ends_.begin());
      }
      const uint32_t units = requests_[i].units + (i == odd ? 1 : 0);
      Block* block = arena_.Allocate(units * 128 * kKiB);
      EXPECT_NE(block, nullptr) << "request " << i;
      ends_.emplace(now_ + requests_[i].life, block);
    }
    EXPECT_TRUE(arena_.Validate());
    return arena_.counters().stitched - before;
  }
  uint64_t Steps(int count) {
    uint64_t moved = 0;
    for (int i = 0; i < count; ++i) moved += Step();
    return moved;
  }
  uint64_t planned() const { return arena_.counters().planned; }
  uint64_t requests() const { return requests_.size(); }
  // Chunks, in thousandths of what was requested at most.
  uint64_t held() {
    return 1000 * kChunkBytes * backend_.peak_held() / arena_.allocator().peak_requested();
  }

 private:
  CountingBackend backend_{1 << 11};
  Arena arena_;
  const std::vector<Asked> requests_ = Training(8, 200);
  std::multimap<size_t, Block*> ends_;
  size_t now_ = 0;
};

TEST(PlacementPlan, MovesNothingWhereOthersLieInPlacesOfState) {
  TrainingInArena training(20);
  EXPECT_NE(training.Steps(4), 0u) << "it would need no plan";
  training.Steps(8);
  const uint64_t planned = training.planned();
  EXPECT_EQ(training.Steps(20), 0u);
  EXPECT_EQ(training.planned(), planned + 20 * training.requests());
}

TEST(PlacementPlan, TakesTwiceTheSlackWhereChunksWouldMoveForEver) {
  TrainingInArena training(10);
  EXPECT_NE(training.Steps(10), 0u);
  training.Steps(20);
  EXPECT_EQ(training.Steps(20), 0u);
  EXPECT_GT(training.held(), 1010u);
  EXPECT_LE(training.held(), 1020u);
}

// Half of its requests are like those before and after them, so that it could be anywhere in a
// step, and in the step that differed some of a size were made anew and others were not.
TEST(PlacementPlan, MovesNothingSoonAfterAStepInWhichARequestDiffered) {
  for (const size_t odd : {5, 100, 125, 150, 180, 201, 225}) {
    TrainingInArena training(20);
    training.Steps(12);
    training.Step(odd);
    training.Steps(4);
    const uint64_t planned = training.planned();
    EXPECT_EQ(training.Steps(8), 0u) << "request " << odd;
    EXPECT_EQ(training.planned(), planned + 8 * training.requests()) << "request " << odd;
  }
}

}  // namespace
}  // namespace tidemark::core
