// A step as the bounds see it: for each operation, how many bytes must be away from the device
// while it runs, and for each buffer the gaps between uses in which its bytes can be away. Smaller
// than the step: gaps with the same ends are one. Not a planner's view: nothing here knows queues
// or chunks. Threads: none of its own.

#ifndef TIDEMARK_CORE_BOUNDS_IDLE_GAPS_H_
#define TIDEMARK_CORE_BOUNDS_IDLE_GAPS_H_

#include <cstdint>

#include "core/array.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core {

// Bytes that nobody uses in the operations strictly between `from` and `to`, counted cyclically:
// from < operations, from < to <= from + operations.
struct IdleGap {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t bytes = 0;
};

// Bytes that hold the same content from the end of operation `from` on and are last away before
// operation `to`: one copy out serves all gaps in between.
using DirtySpan = IdleGap;

enum class BoundOutcome : uint8_t {
  kBound,
  kCannot,    // no plan fits: an operation needs more than the budgets give
  kBadInput,  // `reason` is a sentence
  kNoMemory,  // host memory for the computation itself
};

struct IdleGaps {
  const char* reason = "";
  Array<Nanoseconds> duration;  // per operation
  Array<int64_t> demand;        // per operation: bytes that must be away while it runs
  Array<int64_t> dirty_demand;  // the same, less what can be away without ever being copied out
  Array<IdleGap> gaps;
  Array<DirtySpan> spans;
  Bytes smallest_device_budget = 0;  // below it no plan fits, whatever the host has

  // The step and the machine are valid if this returns anything but kBadInput.
  BoundOutcome Build(const Step& step, const Machine& machine);
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_IDLE_GAPS_H_
