// How far ahead the device can hold everything: for each operation u, for how many operations
// before u all that is used up to and including u fits into the budget together. Inside that
// horizon nothing needs to leave (Belady's rule would evict something used later), so bytes for u
// may come back; outside of it something used at u or sooner must be away. Threads: none of its
// own.

#ifndef TIDEMARK_CORE_PLANNER_HORIZON_H_
#define TIDEMARK_CORE_PLANNER_HORIZON_H_

#include <cstdint>

#include "core/array.h"
#include "core/planner/range_max.h"
#include "core/planner/timeline.h"
#include "core/units.h"

namespace tidemark::core::planner {

class Horizon {
 public:
  // False: no host memory.
  [[nodiscard]] bool Build(const Timeline& timeline, Bytes budget);

  // Operations counted on through the iterations: whether at `now` all used up to `use` fits.
  bool Holds(uint32_t use, uint32_t now) const {
    return use - now <= levels_[size_t{use % ops_} * kLevels].lag;
  }
  // Of what is used at `use`, so much must be away at some operation from `now` on; where it grows
  // in many steps, rounded up by less than one part in kLevels of what is used there after a
  // window.
  Bytes Excess(uint32_t use, uint32_t now) const;

 private:
  static constexpr uint32_t kLevels = 8;
  void FillLevels(uint32_t slot, int64_t limit);

  RangeMax open_;  // what is open before each slot, over two iterations
  uint32_t ops_ = 1;
  struct Level {
    uint32_t lag;  // so many operations before the use, no more than `excess` does not fit
    Bytes excess;
  };
  Array<Level> levels_;     // kLevels per operation
  Array<Bytes> returning_;  // per operation: bytes of the windows that end there
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_HORIZON_H_
