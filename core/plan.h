// What an offload plan is, and nothing about how it is found. A plan is made of moves: a buffer, or
// a run of its chunks, is away from the device between two uses. Everything that takes or gives
// device memory is tied to operation boundaries, never to clock times, so the device bytes at each
// operation follow from the plan alone: late copies stall the step, and the promised peak holds.
//
// Order of events at the boundary before operation i:
//   1. wait for the copies out of moves with release == i;
//   2. one safepoint if any move has release == i or ready == i: their chunks return to the pool;
//   3. moves with reserve == i take chunks, and their copies in may start, in queue order;
//   4. wait for the copies in of moves with ready == i;
//   5. the operation runs; after it, transient buffers with freed == i give their memory back, and
//      copies out with after == i may start, in queue order.
// A link copies one move at a time, in the order of its queue. Indices are within one iteration and
// go after, release, reserve, ready in cyclic order, with release != reserve; a move whose indices
// step down on the way goes across the iteration's end (persistent buffers only), and in the steady
// state it is open when an iteration starts. Parts of one buffer that are away at the same time do
// not overlap. What is parked takes host memory all the time and device memory never.
// Threads: none of its own.

#ifndef TIDEMARK_CORE_PLAN_H_
#define TIDEMARK_CORE_PLAN_H_

#include <cstdint>

#include "core/array.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core {

using MoveIndex = uint32_t;

struct Move {
  BufferIndex buffer = 0;
  Bytes offset = 0;     // of the part that leaves, in the buffer; a multiple of chunk_bytes
  Bytes bytes = 0;      // whole chunks, or up to the buffer's end
  OpIndex after = 0;    // the copy out may start when this operation is done: not before the last
                        // write ahead of `release`; reads may still follow
  OpIndex release = 0;  // boundary at which the device chunks are given back: after the last use
  OpIndex reserve = 0;  // boundary from which device chunks are taken and the copy in may start
  OpIndex ready = 0;    // boundary at which the buffer is resident again: at or before the next use
  bool clean = false;   // the host copy of an earlier move is still valid: nothing is copied out,
                        // and `after` is not looked at
  bool keeps_copy = false;  // the host copy stays after `ready`, for a later clean move (the next
                            // one of this part, in cyclic order), up to that move's `ready`
};

// Of a persistent buffer that no operation uses: `bytes` from its start stay on the host for good.
// Nothing is copied for them in the steady state, and no move is of the same buffer.
struct Parked {
  BufferIndex buffer = 0;
  Bytes bytes = 0;  // whole chunks, or all of the buffer
};

enum class WindowVerdict : uint8_t {
  kTaken,
  kTakenInPart,
  kNotNeeded,  // the budget holds without it
  kTooShort,   // out and in do not fit, or cost more than they give
  kTooSmall,   // below min_bytes
  kImmovable,
  kHostFull,
  kWorseThanOthers,  // another window gives the same bytes for less
};

// One idle window of one buffer, and why it was taken or refused.
struct WindowDecision {
  BufferIndex buffer = 0;
  OpIndex last_use = 0;  // the window lies between these two operations, cyclic when
  OpIndex next_use = 0;  // next_use <= last_use
  WindowVerdict verdict = WindowVerdict::kNotNeeded;
};

enum class PlanOutcome : uint8_t {
  kPlanned,
  kCannot,    // no plan fits: smallest_device_budget / smallest_host_budget say what would
  kBadInput,  // Plan::reason is a sentence
  kNoMemory,  // host memory for the planning itself
};

struct Plan {
  PlanOutcome outcome = PlanOutcome::kBadInput;
  const char* reason = "";  // a literal, one sentence, for every outcome but kPlanned
  Array<Move> moves;
  Array<MoveIndex>
      out_queue;  // moves that copy out, in the order of the link, from the step's start
  Array<MoveIndex> in_queue;  // all moves, likewise
  Array<Parked> parked;       // at most one for each buffer
  Array<WindowDecision> decisions;
  // Predictions for one iteration in the steady state.
  Nanoseconds step_time = 0;
  Nanoseconds ideal_time = 0;  // the sum of the durations
  Nanoseconds stall_time = 0;  // waiting for copies; safepoints come on top
  uint32_t safepoints = 0;
  Bytes device_peak = 0;
  Bytes host_peak = 0;
  Bytes bytes_out = 0;
  Bytes bytes_in = 0;
  // kCannot: the least device budget for which a plan was found with this host budget. kPlanned:
  // below it no plan exists, whatever the host has.
  Bytes smallest_device_budget = 0;
  uint32_t recipe = 0;  // which of the planner's ways found it; for Replan

  // Moves and queues, not the decisions; false: no host memory.
  [[nodiscard]] bool CopyMoves(const Plan& other) {
    recipe = other.recipe;
    return moves.CopyFrom(other.moves) && out_queue.CopyFrom(other.out_queue) &&
           in_queue.CopyFrom(other.in_queue);
  }
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PLAN_H_
