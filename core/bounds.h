// How little traffic and how little time any plan can need for a step on a machine: the yardstick
// for the planner and for every policy in tests/bench. docs/bounds.md derives each bound. Not a
// plan: nothing here says that the bound can be reached. Threads: none of its own.

#ifndef TIDEMARK_CORE_BOUNDS_H_
#define TIDEMARK_CORE_BOUNDS_H_

#include <cstdint>

#include "core/bounds/idle_gaps.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core {

// Bytes per iteration in the steady state.
struct TrafficBound {
  BoundOutcome outcome = BoundOutcome::kBadInput;
  const char* reason = "";  // one sentence, for every outcome but kBound
  Bytes bytes_out = 0;      // no plan copies out less; changed content only
  Bytes bytes_in = 0;       // no plan copies in less
};

struct TimeBound {
  BoundOutcome outcome = BoundOutcome::kBadInput;
  const char* reason = "";
  Nanoseconds time = 0;              // no plan's iteration is shorter in the steady state
  Nanoseconds ideal_time = 0;        // the sum of the durations
  Bytes smallest_device_budget = 0;  // valid with kBound and kCannot
};

// When device memory may change hands.
enum class Granularity : uint8_t {
  kBoundary,  // between operations only, as core/plan.h has it
  kAnyTime,   // also while an operation runs: holds for every policy, and is a little lower
};

struct TimeBoundOptions {
  Granularity granularity = Granularity::kBoundary;
  // Looks for a tighter bound with prices, which takes several times longer. They are found by a
  // fixed number of steps, so what they add need not fall when a budget or a rate rises a little.
  bool prices = false;
  // How many times as long prices of the step as it is are sought, and in how many times longer
  // steps. 1: up to a second.
  uint32_t effort = 1;
};

TrafficBound FindTrafficBound(const Step& step, const Machine& machine);

// Costs about operations * (operations + gaps) steps, and with prices some 10^7 more.
TimeBound FindTimeBound(const Step& step, const Machine& machine,
                        const TimeBoundOptions& options = {});

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_H_
