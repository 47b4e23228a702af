// A step as if bytes were a fluid: for each stretch how much must be away, and for each content of
// a buffer the gaps in which any part of it can be. A stretch is one operation or some in a row,
// where the step is too long for that or safepoints are to be few: memory is given back and taken
// at boundaries between stretches only. Every stretch has three slots of link time: 3i, the wait
// for copies out before stretch i, after which memory is given back and taken; 3i + 1, the wait for
// copies in after that; 3i + 2, the operations. Stretches and slots count on through the
// iteration's end. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_STEP_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_STEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// Away from a release at `first` or later up to a reserve at `next` or sooner, in stretches.
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
  double bytes = 0;
  uint32_t write = 0;     // the use that wrote the content; the buffer's first, if none did
  uint32_t from = 0;      // stretch from which the content can be copied out
  bool is_clean = false;  // never written: there is a copy from the start
  uint32_t first_gap = 0;
  uint32_t gap_count = 0;
  // Chains with the same times do the same at any prices: the first of them stands for all.
  uint32_t first_alike = 0;
  uint32_t alike = 0;  // the class
  uint32_t place = 0;  // among those alike
};

// Chains that are alike.
struct FluidClass {
  uint32_t chain = 0;  // the first of them
  uint32_t count = 0;
  double bytes = 0;   // of all
  uint32_t size = 0;  // stretches in the gaps of one of them
};

struct FluidStep {
  Array<OpIndex> starts;   // per stretch: its first operation
  Array<double> demand;    // per stretch, bytes
  Array<double> duration;  // per stretch, ns
  Array<FluidChain> chains;
  Array<FluidGap> gaps;
  Array<FluidClass> classes;
  size_t size = 0;             // stretches in all gaps of one chain of each class,
  size_t gaps_of_classes = 0;  // and those gaps

  // Anew, in at most so many stretches; with so many bytes less than the budget where an
  // operation's floor allows it. False: no host memory.
  [[nodiscard]] bool Build(const Timeline& timeline, const Machine& machine, uint32_t stretches,
                           Bytes spare);

  // Finds the classes of the chains, and the size. False: no host memory.
  [[nodiscard]] bool Classify();

  // Whether it helps anybody that bytes are away in the gap.
  bool IsTight(const FluidGap& gap) const;

  // The operation at whose start stretch k starts, counted on like it.
  uint32_t OpAt(uint32_t k) const {
    const auto count = static_cast<uint32_t>(starts.size());
    return starts[k % count] + k / count * ops_;
  }

 private:
  [[nodiscard]] bool ChooseStarts(const Timeline& timeline, uint32_t stretches);
  [[nodiscard]] bool AddChains(const Timeline& timeline, BufferIndex b);
  [[nodiscard]] bool AddGap(const Timeline& timeline, uint32_t use, uint32_t base);
  void DropEmptyChain();
  uint32_t FirstFrom(uint32_t op) const;  // the first stretch that starts there or later
  uint32_t LastUntil(uint32_t op) const;  // the last one that starts there or sooner
  int Compare(const FluidChain& a, const FluidChain& b) const;

  uint32_t ops_ = 0;
  Array<uint32_t> stretch_of_;  // per operation
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_STEP_H_
