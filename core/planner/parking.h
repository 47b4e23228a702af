// Persistent buffers that no operation of the step uses: state of an optimizer that runs in another
// step, a model that is asked now and then. What of them leaves stays on the host for good and
// costs no copy in the steady state, so they are settled before anything else is planned: as many
// are parked as the budget asks for and the host holds. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_PARKING_H_
#define TIDEMARK_CORE_PLANNER_PARKING_H_

#include "core/array.h"
#include "core/plan.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core::planner {

class Parking {
 public:
  // Finds what may be parked, and parks all that the host holds. False: no host memory.
  [[nodiscard]] bool Init(const Step& step, const Machine& machine);

  bool empty() const { return candidates_.empty(); }
  // The step with all that may be parked as buffers of no bytes. Only if not empty.
  const Step& rest() const { return rest_; }
  // Parks at least `needed` bytes, in whole chunks, or all that the host holds.
  void ParkAtLeast(Bytes needed);
  Bytes all_bytes() const { return all_bytes_; }
  Bytes kept_bytes() const { return all_bytes_ - parked_bytes_; }  // on the device all the time
  // What is left of the machine for the rest of the step.
  Machine Left(const Machine& machine) const;

  // Makes a plan of the rest one of the whole step. False: no host memory.
  [[nodiscard]] bool Complete(Plan* plan) const;

 private:
  struct Candidate {
    BufferIndex buffer = 0;
    Bytes bytes = 0;
    Bytes parked = 0;
  };

  WindowVerdict Verdict(const Candidate& candidate) const;

  Step rest_;
  Array<Candidate> candidates_;  // largest first
  Bytes host_budget_ = 0;
  Bytes chunk_bytes_ = 1;
  Bytes all_bytes_ = 0;
  Bytes parked_bytes_ = 0;
  bool is_enough_ = true;  // as much is parked as was needed
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_PARKING_H_
