// The planner's advice for a training loop: who is away follows the budget and the phase.

#include "interpose/plan_follower.h"

#include <memory>

#include "tests/core/training_loop.h"

namespace tidemark::interpose {
namespace {

using core::kMiB;

// Weights of 10 MiB and activations of 5 MiB in twelve layers, and a launch of 2 ms.
struct Followed {
  std::unique_ptr<core::TrainingLoop> loop =
      std::make_unique<core::TrainingLoop>(12, 10 * kMiB / 1000);
  PlanFollower follower;
  core::Machine machine;

  explicit Followed(core::Bytes budget) {
    machine.device_budget = budget;
    for (int step = 0; step < 10; ++step) loop->Step();
    loop->iteration.Learn();
    follower.Enable();
    follower.Update(loop->iteration, machine, 2000000);
    follower.FinishForTesting();
  }
  int AwayNow() {
    int away = 0;
    for (const core::BufferName& weight : loop->weights) {
      away += follower.Advice(loop->iteration, weight).away ? 1 : 0;
    }
    return away;
  }
};

TEST(PlanFollowerTest, NothingIsAwayWhereEverythingFits) {
  Followed job(400 * kMiB);
  ASSERT_TRUE(job.follower.following(job.loop->iteration));
  for (int step = 0; step < 2; ++step) {
    job.loop->Step();
    EXPECT_EQ(job.AwayNow(), 0);
  }
}

TEST(PlanFollowerTest, UnderABudgetSomeAreAwayAndTheSameOnesInEachStep) {
  Followed job(90 * kMiB);
  ASSERT_TRUE(job.follower.following(job.loop->iteration));
  const int first = job.AwayNow();
  EXPECT_GT(first, 0);
  EXPECT_LT(first, 12);
  job.loop->Step();
  EXPECT_EQ(job.AwayNow(), first);
}

TEST(PlanFollowerTest, NothingIsFollowedAfterTheIterationChanged) {
  Followed job(90 * kMiB);
  ASSERT_TRUE(job.follower.following(job.loop->iteration));
  job.loop->Launch(77, {});
  EXPECT_FALSE(job.follower.following(job.loop->iteration));
}

TEST(PlanFollowerTest, WithoutTheSwitchThereIsNoPlan) {
  auto loop = std::make_unique<core::TrainingLoop>(12, kMiB / 100);
  for (int step = 0; step < 10; ++step) loop->Step();
  loop->iteration.Learn();
  PlanFollower follower;
  follower.Update(loop->iteration, core::Machine(), 1000);
  follower.FinishForTesting();
  EXPECT_FALSE(follower.following(loop->iteration));
}

}  // namespace
}  // namespace tidemark::interpose
