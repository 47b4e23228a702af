// What a plan costs: walks it as plan.h defines execution, iteration after iteration until the time
// no longer changes, and sums up what the device and the host hold. It believes the plan to be well
// formed, but finds out when its queues lock each other up. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_EVALUATE_H_
#define TIDEMARK_CORE_PLANNER_EVALUATE_H_

#include <cstdint>

#include "core/array.h"
#include "core/plan.h"
#include "core/planner/links.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

class Evaluator {
 public:
  enum class Result : uint8_t { kDone, kLocked, kNoMemory };

  // Fills the predictions of *plan (times, peaks, traffic) from its moves and queues.
  Result Run(const Timeline& timeline, const Machine& machine, Plan* plan);

  // Of the last iteration of the last Run, per operation: waits for copies out and in before it.
  const Array<double>& waits_out() const { return wait_out_; }
  const Array<double>& waits_in() const { return wait_in_; }
  // Per move: the first boundary at which its copy out (in) was done without anybody waiting for
  // it, if it was done before its release (ready); otherwise that boundary.
  const Array<OpIndex>& out_done_at() const { return out_done_at_; }
  const Array<OpIndex>& in_done_at() const { return in_done_at_; }

 private:
  struct ByOp {  // moves grouped by an operation: list[first[i] .. first[i + 1])
    Array<uint32_t> first;
    Array<MoveIndex> list;
  };
  [[nodiscard]] bool Group(OpIndex Move::*when, ByOp* group);
  [[nodiscard]] bool Prepare();
  Result Iterate(uint32_t iteration);
  Result Boundary(OpIndex i);
  Result WaitFor(Direction direction, const ByOp& group, OpIndex i);
  [[nodiscard]] bool PutReady(Direction direction, OpIndex i);
  void NoteDone(OpIndex i);
  bool WrapsBeforeWait(Direction direction, const Move& move) const;

  const Timeline* timeline_ = nullptr;
  const Machine* machine_ = nullptr;
  Plan* plan_ = nullptr;
  Links links_;
  ByOp by_release_, by_ready_;
  uint32_t iteration_ = 0;
  size_t next_[2] = {};        // position in the queues
  Array<uint32_t> copy_[2];    // per move: its copy of the newest iteration ...
  Array<uint32_t> before_[2];  // ... and of the one before; kNone: none yet
  Array<double> wait_out_, wait_in_;
  Array<OpIndex> out_done_at_, in_done_at_;
  uint32_t noted_[2] = {};       // copies whose end was noted
  Array<MoveIndex> move_of_[2];  // per copy
  double stall_ = 0;
};

// The most bytes on the device and on the host at once, by operation; also adds up traffic. False:
// no host memory.
[[nodiscard]] bool CountBytes(const Timeline& timeline, Plan* plan);
// Bytes on the host in each slot (slot i: the boundary before operation i and the operation
// itself).
[[nodiscard]] bool HostBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* host);
// Bytes on the device during each operation.
[[nodiscard]] bool DeviceBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* device);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_EVALUATE_H_
