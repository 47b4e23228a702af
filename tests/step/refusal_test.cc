// Each rule of core/plan.h broken once: the simulator refuses, and says which buffer at which
// operation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/step/simulator.h"
#include "tests/step/small_step.h"

namespace tidemark::steps {
namespace {

using core::Machine;
using core::Move;
using core::Plan;
using testing::AllOf;
using testing::HasSubstr;

std::string Refusal(const Plan& plan, const Machine& machine = SmallMachine()) {
  return Simulate(SmallStep(), machine, plan).refusal;
}

TEST(Refusal, AnOperationWhoseBufferIsAway) {
  core::Step step = SmallStep();
  step.buffers[2].freed = 9;  // so that the move may end after its last use
  EXPECT_THAT(Simulate(step, SmallMachine(), PlanOf({MoveOf(2, 3000, {1, 5, 6, 9})})).refusal,
              AllOf(HasSubstr("operation 8 uses buffer 2"), HasSubstr("not resident")));
}

TEST(Refusal, ParkingWhatIsUsedOrMovedOrDoesNotFitTheHost) {
  core::Step step = SmallStep();
  core::StepBuffer idle;
  idle.bytes = 2500;
  idle.persistent = true;
  ASSERT_TRUE(step.buffers.Append(idle));
  const auto refusal = [&](core::BufferIndex buffer, core::Bytes bytes, core::Bytes host) {
    Plan plan;
    EXPECT_TRUE(plan.parked.Append({buffer, bytes}));
    Machine machine = SmallMachine(12500 - bytes);
    machine.host_budget = host;
    return Simulate(step, machine, plan).refusal;
  };
  EXPECT_EQ(refusal(4, 2500, 2500), "") << "all of it";
  EXPECT_EQ(refusal(4, 1000, 1000), "") << "a chunk of it";
  EXPECT_THAT(refusal(4, 2500, 2499),
              AllOf(HasSubstr("2500 bytes on the host"), HasSubstr("2499")));
  EXPECT_THAT(refusal(4, 1500, 9999), HasSubstr("not whole chunks"));
  EXPECT_THAT(refusal(0, 1000, 9999), AllOf(HasSubstr("buffer 0"), HasSubstr("is used")));
  EXPECT_THAT(refusal(3, 2000, 9999), AllOf(HasSubstr("buffer 3"), HasSubstr("not persistent")));
  EXPECT_THAT(refusal(9, 1000, 9999), HasSubstr("does not exist"));
}

TEST(Refusal, APeakAboveTheDeviceBudget) {
  EXPECT_THAT(Refusal(Plan(), SmallMachine(9999)),
              AllOf(HasSubstr("operation 4 needs 10000 bytes"), HasSubstr("buffer 3 born")));
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 4, 5, 8})});
  EXPECT_THAT(Refusal(plan, SmallMachine(8000)),
              AllOf(HasSubstr("operation 5"), HasSubstr("buffer 2 coming back")));
}

TEST(Refusal, MoreCopiesThanTheHostBudgetHolds) {
  Machine machine = SmallMachine();
  machine.host_budget = 3500;
  EXPECT_THAT(
      Refusal(PlanOf({MoveOf(1, 1000, {0, 5, 6, 9}), MoveOf(2, 3000, {1, 5, 6, 8})}), machine),
      AllOf(HasSubstr("after operation 1"), HasSubstr("buffer 2"), HasSubstr("4000")));
}

TEST(Refusal, ACleanMoveThatHasNoHostCopy) {
  Move move = MoveOf(2, 3000, {0, 5, 6, 8});
  move.clean = true;
  EXPECT_THAT(Refusal(PlanOf({move})),
              AllOf(HasSubstr("operation 5"), HasSubstr("buffer 2"), HasSubstr("no copy")));
}

TEST(Refusal, ACleanMoveWhoseHostCopyWasNotKept) {
  Move second = MoveOf(0, 1000, {0, 6, 7, 9});
  second.clean = true;
  EXPECT_THAT(Refusal(PlanOf({MoveOf(0, 1000, {0, 2, 3, 5}), second})),
              AllOf(HasSubstr("operation 6"), HasSubstr("buffer 0"), HasSubstr("no copy")));
}

TEST(Refusal, ACleanMoveWhoseHostCopyIsStale) {
  StepBuilder b;
  b.Persistent(1000);
  for (int i = 0; i < 8; ++i) {
    if (i == 4) {
      b.Op(100, {}, {0});
    } else {
      b.Op(100, {}, {});
    }
  }
  Move first = MoveOf(0, 1000, {0, 2, 3, 4});
  first.keeps_copy = true;
  Move second = MoveOf(0, 1000, {0, 5, 6, 7});
  second.clean = true;
  EXPECT_THAT(Simulate(b.Take(), SmallMachine(), PlanOf({first, second})).refusal,
              AllOf(HasSubstr("operation 5"), HasSubstr("buffer 0"), HasSubstr("stale")));
}

TEST(Refusal, ACopyOutThatStartsBeforeTheLastWrite) {
  StepBuilder b;
  b.Persistent(1000);
  for (int i = 0; i < 8; ++i) {
    if (i == 2) {
      b.Op(100, {}, {0});
    } else {
      b.Op(100, {}, {});
    }
  }
  EXPECT_THAT(Simulate(b.Take(), SmallMachine(), PlanOf({MoveOf(0, 1000, {1, 4, 5, 6})})).refusal,
              AllOf(HasSubstr("operation 4"), HasSubstr("buffer 0"), HasSubstr("stale")));
}

TEST(Refusal, AKeptCopyThatNoCleanMoveUses) {
  Move kept = MoveOf(2, 3000, {1, 5, 6, 8});
  kept.keeps_copy = true;
  EXPECT_THAT(Refusal(PlanOf({kept})), AllOf(HasSubstr("buffer 2"), HasSubstr("still kept")));
  Move again = MoveOf(0, 1000, {0, 2, 3, 5});
  again.keeps_copy = true;
  EXPECT_THAT(Refusal(PlanOf({again})), AllOf(HasSubstr("buffer 0"), HasSubstr("still kept")));
}

TEST(Refusal, PartsThatOverlap) {
  Move tail = MoveOf(1, 3000, {0, 5, 6, 9});
  tail.offset = 1000;
  EXPECT_THAT(Refusal(PlanOf({MoveOf(1, 2000, {0, 4, 6, 9}), tail})),
              AllOf(HasSubstr("operation 5"), HasSubstr("buffer 1"), HasSubstr("taken already")));
}

TEST(Refusal, ACopyOutOfBytesThatAreAway) {
  Move again = MoveOf(1, 3000, {5, 8, 9, 9});
  again.offset = 1000;
  EXPECT_THAT(Refusal(PlanOf({MoveOf(1, 2000, {0, 4, 6, 7}), again})),
              AllOf(HasSubstr("operation 5"), HasSubstr("buffer 1"), HasSubstr("away")));
}

TEST(Refusal, ABufferThatMayNotMove) {
  core::Step step = SmallStep();
  step.buffers[2].movable = false;
  EXPECT_THAT(Simulate(step, SmallMachine(), PlanOf({MoveOf(2, 3000, {1, 5, 6, 8})})).refusal,
              AllOf(HasSubstr("buffer 2"), HasSubstr("not movable")));
  Machine machine = SmallMachine();
  machine.min_bytes = 3001;
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 3000, {1, 5, 6, 8})}), machine),
              AllOf(HasSubstr("buffer 2"), HasSubstr("minimum")));
}

TEST(Refusal, APartThatIsNotWholeChunksOrNotInTheBuffer) {
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 1500, {1, 5, 6, 8})})), HasSubstr("whole chunks"));
  Move odd = MoveOf(2, 2500, {1, 5, 6, 8});
  odd.offset = 500;
  EXPECT_THAT(Refusal(PlanOf({odd})), HasSubstr("whole chunks"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 4000, {1, 5, 6, 8})})), HasSubstr("beyond"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 0, {1, 5, 6, 8})})), HasSubstr("nothing"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(7, 1000, {1, 5, 6, 8})})), HasSubstr("does not exist"));
}

TEST(Refusal, IndicesOutOfOrder) {
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 3000, {1, 5, 5, 8})})), HasSubstr("at one boundary"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(0, 1000, {3, 2, 5, 6})})), HasSubstr("out of order"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(0, 1000, {1, 1, 5, 6})})), HasSubstr("out of order"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 3000, {1, 5, 10, 8})})), HasSubstr("does not exist"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 3000, {8, 9, 2, 8})})), HasSubstr("iteration's end"));
  EXPECT_THAT(Refusal(PlanOf({MoveOf(2, 3000, {1, 5, 6, 9})})), HasSubstr("not alive"));
}

TEST(Refusal, QueuesThatLoseOrRepeatAMove) {
  Plan plan = PlanOf({MoveOf(2, 3000, {1, 5, 6, 8})});
  plan.in_queue.Clear();
  EXPECT_THAT(Refusal(plan),
              AllOf(HasSubstr("copies in"), HasSubstr("lacks"), HasSubstr("buffer 2")));
  ASSERT_TRUE(plan.in_queue.Append(0) && plan.in_queue.Append(0));
  EXPECT_THAT(Refusal(plan), HasSubstr("twice"));
  plan = PlanOf({MoveOf(2, 3000, {1, 5, 6, 8})});
  plan.moves[0].clean = true;
  EXPECT_THAT(Refusal(plan), HasSubstr("which is clean"));
  ASSERT_TRUE(plan.out_queue.Append(7));
  plan.moves[0].clean = false;
  EXPECT_THAT(Refusal(plan), HasSubstr("which is none"));
}

// Buffer 2 must be back at 8, but behind buffer 1, whose copy may start only at 9.
TEST(Refusal, QueuesThatWaitForEachOther) {
  Plan plan = PlanOf({MoveOf(1, 4000, {0, 6, 9, 9}), MoveOf(2, 3000, {1, 5, 6, 8})});
  EXPECT_THAT(Refusal(plan), AllOf(HasSubstr("operation 8 waits for ever"), HasSubstr("buffer 2"),
                                   HasSubstr("buffer 1"), HasSubstr("operation 9")));
}

TEST(Refusal, AStepThatContradictsItself) {
  core::Step step = SmallStep();
  step.buffers[2].freed = 5;
  EXPECT_THAT(Simulate(step, SmallMachine(), Plan()).refusal,
              AllOf(HasSubstr("operation 8"), HasSubstr("buffer 2"), HasSubstr("not alive")));
  EXPECT_THAT(Simulate(core::Step(), SmallMachine(), Plan()).refusal, HasSubstr("no operations"));
}

}  // namespace
}  // namespace tidemark::steps
