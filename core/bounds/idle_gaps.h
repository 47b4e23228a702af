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

// The gaps of one buffer that one copy out serves, in order, each with more than no operation in
// it.
struct CopyChain {
  uint32_t from = 0;  // what is copied was written there; kNeverDirty: a copy exists from the start
  uint32_t first_gap = 0;  // in IdleGaps::chain_gaps
  uint32_t gap_count = 0;
  int64_t bytes = 0;
};
inline constexpr uint32_t kNeverDirty = ~uint32_t{0};

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
  Array<CopyChain> chains;  // per buffer, not merged; those of `spans` and the never dirty ones
  Array<IdleGap> chain_gaps;
  // Where memory changes hands between operations only, the host holds what has to change places.
  bool exchanges_fit = true;
  Bytes smallest_device_budget = 0;  // below it no plan fits, whatever the host has

  // The step and the machine are valid if this returns anything but kBadInput.
  BoundOutcome Build(const Step& step, const Machine& machine);
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_IDLE_GAPS_H_
