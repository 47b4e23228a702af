// Timelines computed by hand on the small step; times in ns.

#include "tests/step/simulator.h"

#include <gtest/gtest.h>

#include "tests/step/small_step.h"

namespace tidemark::steps {
namespace {

using core::Machine;
using core::Plan;
using core::Step;

// Late in a long step the clock counts in quarters of a nanosecond, and copies end between them.
TEST(Simulator, EndsCopiesAfterDaysAsWell) {
  StepBuilder s;
  s.Transient(9000);
  const core::Nanoseconds days = core::Nanoseconds{1} << 50;
  s.Op(days, {}, {0});
  s.Op(days, {}, {});
  s.Op(days, {0}, {});
  const core::Step step = s.Take();
  Machine machine = SmallMachine();
  SetRates(7e9, 7e9, &machine);
  for (core::Bytes bytes = 1000; bytes <= 9000; bytes += 1000) {
    const Simulation run = Simulate(step, machine, PlanOf({MoveOf(0, bytes, {0, 1, 2, 2})}));
    EXPECT_EQ(run.refusal, "");
    EXPECT_NEAR(run.step_ns, 3 * static_cast<double>(days), 2 * 9000 / 7.0 + 4);
  }
}

TEST(Simulator, AStepWithoutMovesTakesTheSumOfItsDurationsAndItsLivePeak) {
  const Step step = SmallStep();
  const Simulation s = Simulate(step, SmallMachine(), Plan());
  ASSERT_EQ(s.refusal, "");
  EXPECT_TRUE(s.steady);
  EXPECT_DOUBLE_EQ(s.step_ns, 1000);
  EXPECT_EQ(s.device_peak, 10000u);
  EXPECT_EQ(s.host_peak, 0u);
  EXPECT_EQ(LivePeak(step), 10000u);
}

// Buffer 2 is written by operation 1, done at 200. Two chunks of it leave 200..400 and come back
// 600..800, when operation 8 starts.
TEST(Simulator, ACopyThatFitsItsWindowCostsNothing) {
  const Plan plan = PlanOf({MoveOf(2, 2000, {1, 4, 6, 8})});
  const Simulation s = Simulate(SmallStep(), SmallMachine(8000), plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.step_ns, 1000);
  EXPECT_EQ(s.device_peak, 8000u);
  EXPECT_EQ(s.host_peak, 2000u);
  EXPECT_EQ(s.bytes_out, 2000u);
  EXPECT_EQ(s.bytes_in, 2000u);
  EXPECT_DOUBLE_EQ(s.out_busy_ns, 200);
  EXPECT_DOUBLE_EQ(s.in_busy_ns, 200);
}

// Out 200..500, but the chunks are wanted at boundary 4, which compute reaches at 400: 100 late.
// The copy in starts at boundary 7 (at 800) and takes until 1100; boundary 8 is reached at 900.
TEST(Simulator, LateCopiesStallTheStep) {
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 4, 7, 8})});
  const Simulation s = Simulate(SmallStep(), SmallMachine(8000), plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.step_ns, 1300);
  EXPECT_DOUBLE_EQ(s.wait_out_ns, 100);
  EXPECT_DOUBLE_EQ(s.wait_in_ns, 200);
  EXPECT_EQ(s.device_peak, 8000u);  // at 1 to 3
}

TEST(Simulator, ASafepointIsPaidOncePerBoundaryThatRemaps) {
  Machine machine = SmallMachine();
  machine.safepoint = 7;
  // Boundaries 5, 6 (two moves each) and 8, 9: reserve alone remaps nothing.
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 5, 6, 8}), MoveOf(1, 1000, {1, 5, 6, 9})});
  const Simulation s = Simulate(SmallStep(), machine, plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_EQ(s.safepoints, 3u);
  EXPECT_DOUBLE_EQ(s.safepoint_ns, 21);
}

// Out of 2: 200..500, alone. From 600 on buffer 2 comes back while buffer 1 leaves, 3000 bytes each
// at 5 bytes per ns: 600..1200, and boundary 8, reached at 800, waits for both. Buffer 1 comes back
// alone from boundary 9 on, 1300..1600, and operation 9 ends at 1700.
TEST(Simulator, RatesDropWhileBothDirectionsAreBusy) {
  Machine machine = SmallMachine();
  machine.out_rate_duplex = machine.in_rate_duplex = 5e9;
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 5, 6, 8}), MoveOf(1, 3000, {5, 8, 9, 9})});
  const Simulation s = Simulate(SmallStep(), machine, plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.step_ns, 1700);
  EXPECT_DOUBLE_EQ(s.wait_out_ns, 400);  // the copy out ends at 1200 as well, and comes first
  EXPECT_DOUBLE_EQ(s.wait_in_ns, 300);
}

// Out of 2: 200..500, then of 1: 500..900, so boundary 6 waits 600..900. In: buffer 1 stands first
// and may start only at boundary 7 (1000), 1000..1400; then buffer 2, 1400..1700, for which
// boundary 8 waits from 1100 on.
TEST(Simulator, AQueueIsServedInItsOrder) {
  Plan plan = PlanOf({MoveOf(1, 4000, {0, 6, 7, 9}), MoveOf(2, 3000, {1, 5, 6, 8})});
  std::swap(plan.out_queue[0], plan.out_queue[1]);
  const Simulation s = Simulate(SmallStep(), SmallMachine(), plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.step_ns, 1900);
}

// Buffer 0 leaves after operation 0 and is clean until operation 9 writes it: the second move of
// the same bytes copies nothing out.
TEST(Simulator, AValidHostCopyIsDroppedForFree) {
  core::Move first = MoveOf(0, 1000, {0, 2, 3, 5});
  first.keeps_copy = true;
  core::Move second = MoveOf(0, 1000, {0, 6, 7, 9});
  second.clean = true;
  const Simulation s = Simulate(SmallStep(), SmallMachine(), PlanOf({first, second}));
  ASSERT_EQ(s.refusal, "");
  EXPECT_EQ(s.bytes_out, 1000u);
  EXPECT_EQ(s.bytes_in, 2000u);
  EXPECT_EQ(s.host_peak, 1000u);
  EXPECT_DOUBLE_EQ(s.step_ns, 1000);
}

// Used by operation 5 only. Out 600..800, gone from boundary 8 to 2 of the next iteration, back
// 200..400.
TEST(Simulator, AMoveAcrossTheIterationsEndIsOpenAtItsStart) {
  StepBuilder b;
  const core::BufferIndex state = b.Persistent(2000);
  for (int i = 0; i < 10; ++i) {
    if (i == 5) {
      b.Op(100, {state}, {state});
    } else {
      b.Op(100, {}, {});
    }
  }
  const Plan plan = PlanOf({MoveOf(state, 2000, {5, 8, 2, 5})});
  const Simulation s = Simulate(b.Take(), SmallMachine(), plan);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.step_ns, 1000);
  EXPECT_DOUBLE_EQ(s.iteration_ns[0], 1000);
  EXPECT_EQ(s.device_peak, 2000u);
  EXPECT_EQ(s.bytes_out, 2000u);
}

// A buffer that no operation writes has a copy from an earlier iteration: it never leaves again.
TEST(Simulator, ABufferThatIsNeverWrittenComesInOnly) {
  StepBuilder b;
  const core::BufferIndex frozen = b.Persistent(2000);
  for (int i = 0; i < 10; ++i) {
    if (i == 5) {
      b.Op(100, {frozen}, {});
    } else {
      b.Op(100, {}, {});
    }
  }
  core::Move move = MoveOf(frozen, 2000, {0, 6, 2, 5});
  move.clean = move.keeps_copy = true;
  const Simulation s = Simulate(b.Take(), SmallMachine(), PlanOf({move}));
  ASSERT_EQ(s.refusal, "");
  EXPECT_EQ(s.bytes_out, 0u);
  EXPECT_EQ(s.bytes_in, 2000u);
  EXPECT_EQ(s.host_peak, 2000u);
}

TEST(Simulator, PartsOfABufferMoveOnTheirOwn) {
  core::Move head = MoveOf(1, 2000, {0, 3, 5, 9});
  core::Move tail = MoveOf(1, 2000, {0, 5, 6, 9});
  tail.offset = 2000;
  const Simulation s = Simulate(SmallStep(), SmallMachine(), PlanOf({head, tail}));
  ASSERT_EQ(s.refusal, "");
  EXPECT_EQ(s.device_peak, 8000u);  // at 4: 10000 less the head; at 5 the tail is gone for it
}

TEST(Simulator, NoiseIsTheSameForASeedAndWithinItsBounds) {
  SimulationOptions options;
  options.disturbance = {.duration_noise = 0.25, .seed = 3};
  const double once = Simulate(SmallStep(), SmallMachine(), Plan(), options).step_ns;
  EXPECT_EQ(once, Simulate(SmallStep(), SmallMachine(), Plan(), options).step_ns);
  EXPECT_GE(once, 750);
  EXPECT_LE(once, 1250);
  options.disturbance.seed = 4;
  EXPECT_NE(once, Simulate(SmallStep(), SmallMachine(), Plan(), options).step_ns);
}

// At the full rate: out 200..500, back 600..900, boundary 8 waits 100. At half the rate: out
// 200..800 makes boundary 5 wait until 800; back 900..1500, boundary 8 is reached at 1100; 1500 +
// 200.
TEST(Simulator, ARateThatHalvesShowsInLaterIterationsOnly) {
  SimulationOptions options;
  options.disturbance.late_rate_factor = 0.5;
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 5, 6, 8})});
  const Simulation s = Simulate(SmallStep(), SmallMachine(), plan, options);
  ASSERT_EQ(s.refusal, "");
  EXPECT_DOUBLE_EQ(s.iteration_ns[0], 1100);
  EXPECT_DOUBLE_EQ(s.step_ns, 1700);
}

TEST(Simulator, TheTimelineAccountsForTheWholeIteration) {
  SimulationOptions options;
  options.timeline = true;
  const Plan plan = PlanOf({MoveOf(2, 3000, {1, 4, 7, 8})});
  const Simulation s = Simulate(SmallStep(), SmallMachine(), plan, options);
  double compute = 0, copies = 0;
  for (const Span& span : s.spans) {
    const bool copy = span.kind == Span::Kind::kCopyOut || span.kind == Span::Kind::kCopyIn;
    (copy ? copies : compute) += span.end_ns - span.begin_ns;
  }
  EXPECT_DOUBLE_EQ(compute, s.step_ns);
  EXPECT_DOUBLE_EQ(copies, s.out_busy_ns + s.in_busy_ns);
  EXPECT_EQ(s.residency.front().at_ns, 0);
}

TEST(Simulator, TheFloorIsTheLargestWorkingSetPlusWhatCannotMove) {
  Machine machine = SmallMachine();
  EXPECT_EQ(WorkingSetFloor(SmallStep(), machine), 5000u);  // buffers 0 and 1
  machine.min_bytes = 3000;  // now 0 and 3 stay: at 1 and 8 0 + 2, at 0 and 9 0 + 1
  EXPECT_EQ(WorkingSetFloor(SmallStep(), machine), 5000u);
  machine.min_bytes = 5000;  // nothing may leave
  EXPECT_EQ(WorkingSetFloor(SmallStep(), machine), 10000u);
}

}  // namespace
}  // namespace tidemark::steps
