// A step as if bytes were a fluid: for each operation how much must be away, and for each content
// of a buffer the gaps in which any part of it can be. Every operation has three slots of link
// time: 3i, the wait for copies out before operation i, after which memory is given back and
// taken; 3i + 1, the wait for copies in after that; 3i + 2, the operation itself. Operations and
// slots count on through the iteration's end. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_FLUID_STEP_H_
#define TIDEMARK_CORE_PLANNER_FLUID_STEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// Away from a release at `first` or later up to a reserve at `next` or sooner.
struct FluidGap {
  uint32_t use = 0;  // the window
  uint32_t base =
      0;  // 0, or the number of operations if the window counts from one iteration later
  uint32_t first = 0;
  uint32_t next = 0;
};

// The gaps that one copy out serves, in order.
struct FluidChain {
  BufferIndex buffer = 0;
  uint32_t from = 0;      // boundary from which the content can be copied out
  bool is_clean = false;  // never written: there is a copy from the start
  uint32_t first_gap = 0;
  uint32_t gap_count = 0;
};

struct FluidStep {
  Array<double> demand;    // per operation, bytes
  Array<double> duration;  // per operation, ns
  Array<FluidChain> chains;
  Array<FluidGap> gaps;
  size_t size = 0;  // operations in all gaps together

  // Stops where the size would exceed `most`, with a size above it. False: no host memory.
  [[nodiscard]] bool Build(const Timeline& timeline, const Machine& machine, size_t most);

 private:
  [[nodiscard]] bool AddChains(const Timeline& timeline, BufferIndex b);
  [[nodiscard]] bool AddGap(const Timeline& timeline, uint32_t use, uint32_t base);
  bool IsTight(const Use& use) const;
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_FLUID_STEP_H_
