// How a fluid step belongs to the same step in fewer stretches, each of which is some of its own in
// a row. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PRICES_FLUID_NESTING_H_
#define TIDEMARK_CORE_PLANNER_PRICES_FLUID_NESTING_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/prices/fluid_step.h"

namespace tidemark::core::planner {

class FluidNesting {
 public:
  // Both are kept by reference, and have a gap.
  FluidNesting(const FluidStep& coarse, const FluidStep& fine) : coarse_(coarse), fine_(fine) {}
  // False: no host memory.
  [[nodiscard]] bool Init();

  // Stretches and slots of one iteration.
  uint32_t CoarseOf(uint32_t stretch) const { return coarse_of_[stretch]; }
  uint32_t CountIn(uint32_t coarse) const { return first_[coarse + 1] - first_[coarse]; }
  uint32_t CoarseSlot(uint32_t slot) const {
    const uint32_t coarse = coarse_of_[slot / 3];
    return 3 * coarse + (slot / 3 == first_[coarse] ? slot % 3 : 2);
  }
  // Counted on through the iterations: the first stretch in a coarse one.
  uint32_t FirstIn(uint32_t coarse) const {
    const auto n = static_cast<uint32_t>(coarse_.starts.size());
    return first_[coarse % n] + coarse / n * static_cast<uint32_t>(fine_.starts.size());
  }
  // The coarse chain that is the first one of a class; kNone: it has no gap there.
  uint32_t CoarseChain(uint32_t alike) const { return coarse_chain_[alike]; }

 private:
  const FluidStep& coarse_;
  const FluidStep& fine_;
  Array<uint32_t> coarse_of_;     // per stretch
  Array<uint32_t> first_;         // per coarse stretch, and one more: its first one
  Array<uint32_t> coarse_chain_;  // per class
};

// Which slots take what is copied in a coarse one, in one direction: those of the operations in
// turn, each by its part of the time; so none is asked for much more than it has.
class SpreadCopies {
 public:
  // All are kept by reference.
  SpreadCopies(const FluidStep& coarse, const FluidStep& fine, const FluidNesting& nesting)
      : coarse_(coarse), fine_(fine), nesting_(nesting) {}
  // False: no host memory.
  [[nodiscard]] bool Init();
  // What is copied in a coarse slot, all together.
  void SetAll(uint32_t slot, double bytes) { copies_[slot].all = bytes; }
  // For so many of these bytes; both slots are counted on through the iterations.
  uint32_t Slot(uint32_t coarse, double bytes);

 private:
  struct Copies {
    double all = 0;
    double placed = 0;
  };

  const FluidStep& coarse_;
  const FluidStep& fine_;
  const FluidNesting& nesting_;
  Array<Copies> copies_;  // per coarse slot
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PRICES_FLUID_NESTING_H_
