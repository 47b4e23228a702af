// One training iteration as the planner sees it: operations in order, buffers, who touches what,
// and the machine. Steps repeat: after the last operation comes the first one again, and what a
// persistent buffer holds at the end is what the next iteration finds. Plain data; Validate() is
// the gate for input from outside. Threads: none of its own.

#ifndef TIDEMARK_CORE_STEP_H_
#define TIDEMARK_CORE_STEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/units.h"

namespace tidemark::core {

using OpIndex = uint32_t;
using BufferIndex = uint32_t;
using Nanoseconds = int64_t;

inline constexpr Bytes kNoLimit = ~Bytes{0};

struct StepOp {
  Nanoseconds duration = 0;   // with every buffer resident
  uint32_t first_access = 0;  // its accesses: Step::accesses[first_access ...]
  uint32_t access_count = 0;
};

struct StepAccess {
  BufferIndex buffer = 0;
  bool read = false;
  bool write = false;  // at least one is true; a buffer stands once per operation
};

struct StepBuffer {
  Bytes bytes = 0;
  bool persistent = false;  // lives across iterations; born and freed are not looked at
  bool movable = true;      // false: pinned, or of a class that policy keeps on the device
  OpIndex born = 0;         // takes device memory from just before this operation ...
  OpIndex freed = 0;        // ... until just after this one; every access lies in [born, freed]
};

struct Step {
  Array<StepOp> ops;
  Array<StepAccess> accesses;
  Array<StepBuffer> buffers;

  // Null, or one sentence (a literal) that says what is wrong; *at is the index of the offender.
  const char* Validate(size_t* at) const;
};

// What the step runs on. Rates in bytes per second, above 0.
struct Machine {
  Bytes device_budget = kNoLimit;
  Bytes host_budget = kNoLimit;  // for copies on the host
  double out_rate = 25e9;        // device to host, alone
  double in_rate = 25e9;         // host to device, alone
  double out_rate_duplex =
      25e9;  // while the other direction is busy as well; at most the rate alone
  double in_rate_duplex = 25e9;
  Nanoseconds safepoint = 0;        // added to the step for each operation boundary that remaps
  Bytes chunk_bytes = kChunkBytes;  // a part of a buffer that leaves is whole chunks of this size
  Bytes min_bytes = kMiB;           // smaller buffers stay on the device

  const char* Validate() const;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_STEP_H_
