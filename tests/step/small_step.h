// The step that the simulator's tests are computed on by hand, and plans written as one line a
// move. Sizes are in chunks of 1000 bytes and rates in bytes per ns, so that times come out round.

#ifndef TIDEMARK_TESTS_STEP_SMALL_STEP_H_
#define TIDEMARK_TESTS_STEP_SMALL_STEP_H_

#include <cstdlib>
#include <initializer_list>

#include "core/plan.h"
#include "tests/step/step_builder.h"

namespace tidemark::steps {

inline core::Machine SmallMachine(core::Bytes device_budget = core::kNoLimit) {
  core::Machine machine;
  machine.device_budget = device_budget;
  SetRates(10e9, 10e9, &machine);  // 10 bytes per ns: a chunk takes 100 ns
  machine.chunk_bytes = 1000;
  machine.min_bytes = 1000;
  return machine;
}

// Ten operations of 100 ns. Buffer 0: persistent, 1000 bytes, read by the first and written by the
// last. Buffer 1: 4000 bytes, written by operation 0, read by 9. Buffer 2: 3000 bytes, written
// by 1, read by 8. Buffer 3: 2000 bytes, operations 4 and 5 only. Live peak: 10000 at 4 and 5.
inline core::Step SmallStep() {
  StepBuilder s;
  s.Persistent(1000);
  s.Transient(4000);
  s.Transient(3000);
  s.Transient(2000);
  s.Op(100, {0}, {1});
  s.Op(100, {}, {2});
  s.Op(100, {}, {});
  s.Op(100, {}, {});
  s.Op(100, {}, {3});
  s.Op(100, {3}, {});
  s.Op(100, {}, {});
  s.Op(100, {}, {});
  s.Op(100, {2}, {});
  s.Op(100, {1}, {0});
  return s.Take();
}

inline core::Move MoveOf(core::BufferIndex buffer, core::Bytes bytes,
                         std::initializer_list<core::OpIndex> after_release_reserve_ready) {
  const core::OpIndex* at = after_release_reserve_ready.begin();
  core::Move move;
  move.buffer = buffer;
  move.bytes = bytes;
  move.after = at[0];
  move.release = at[1];
  move.reserve = at[2];
  move.ready = at[3];
  return move;
}

// Queues in the order of the moves.
inline core::Plan PlanOf(std::initializer_list<core::Move> moves) {
  core::Plan plan;
  plan.outcome = core::PlanOutcome::kPlanned;
  for (const core::Move& move : moves) {
    const auto index = static_cast<core::MoveIndex>(plan.moves.size());
    bool ok = plan.moves.Append(move) && plan.in_queue.Append(index);
    if (!move.clean) ok = ok && plan.out_queue.Append(index);
    if (!ok) std::abort();
  }
  return plan;
}

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_SMALL_STEP_H_
