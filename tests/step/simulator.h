// Executes an offload plan as core/plan.h defines it, event by event: one compute line, two links
// with first-in first-out queues, rates that drop while both are busy, safepoints, stalls. It is
// the planner's judge, so it shares no code with it, checks every rule itself, and refuses a plan
// that breaks one with a sentence that names operation and buffer.
//
// Where core/plan.h leaves a choice:
// - A queue runs through the iterations: an entry of iteration k is the copy whose `after` (out) or
//   `reserve` (in) lies in iteration k, and stands behind all entries of iteration k - 1.
// - Host bytes of a copy are taken when operation `after` is done, and returned at boundary `ready`
//   once the copy in is there (with keeps_copy: at the `ready` of the clean move that ends the
//   chain).
// - Bytes count as they are, not rounded to chunks.
// - The first iteration starts in the steady state: open moves are open, their copies done.
// Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_SIMULATOR_H_
#define TIDEMARK_TESTS_STEP_SIMULATOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"
#include "core/step.h"

namespace tidemark::steps {

// How reality differs from what the plan was made for; rates of another kind go into the Machine.
struct Disturbance {
  double duration_noise = 0;  // 0.25: each operation takes 75 % to 125 %, by seed, every iteration
  uint64_t seed = 0;
  double late_rate_factor = 1;  // both links, from the middle of the third iteration on
};

struct SimulationOptions {
  Disturbance disturbance;
  int most_iterations = 32;
  bool timeline = false;
};

// A stretch of the last iteration; times count from its start.
struct Span {
  enum class Kind : uint8_t { kOperation, kWaitOut, kWaitIn, kSafepoint, kCopyOut, kCopyIn };
  Kind kind;
  uint32_t index;  // of the operation, or of the move
  double begin_ns;
  double end_ns;
};

struct ResidencySample {
  double at_ns;
  core::Bytes device_bytes;
  core::Bytes host_bytes;
};

// Times and counts are those of the last iteration.
struct Simulation {
  std::string refusal;  // empty: the plan was executed
  bool steady = false;  // the last three iterations took the same time
  std::vector<double> iteration_ns;
  double step_ns = 0;
  double ideal_ns = 0;  // the durations alone
  double wait_out_ns = 0;
  double wait_in_ns = 0;
  double safepoint_ns = 0;
  uint32_t safepoints = 0;
  core::Bytes device_peak = 0;
  core::Bytes host_peak = 0;
  core::Bytes bytes_out = 0;
  core::Bytes bytes_in = 0;
  double out_busy_ns = 0;
  double in_busy_ns = 0;
  std::vector<Span> spans;                 // with options.timeline
  std::vector<ResidencySample> residency;  // with options.timeline: after each change
};

Simulation Simulate(const core::Step& step, const core::Machine& machine, const core::Plan& plan,
                    const SimulationOptions& options = {});

// The most bytes alive at once when nothing leaves the device, and the operation where that is.
core::Bytes LivePeak(const core::Step& step, core::OpIndex* at = nullptr);
// The largest single operation's working set (what it uses, and what is born before or freed after
// it) plus what cannot move: no budget below it can do.
core::Bytes WorkingSetFloor(const core::Step& step, const core::Machine& machine);

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_SIMULATOR_H_
