// What a plan costs: walks it as plan.h defines execution, iteration after iteration until the time
// no longer changes. It believes the plan to be well formed, but finds out when its queues lock
// each other up. Most of a planner's time goes by in here: a copy is known by its place in its
// queue and the iteration, and the walk ends as soon as the plan is slower than what is asked for.
// Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_EVALUATE_H_
#define TIDEMARK_CORE_PLANNER_EVALUATE_H_

#include <cstdint>

#include "core/array.h"
#include "core/plan.h"
#include "core/planner/links.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

// 146 years: a step is not valued any longer than that.
inline constexpr Nanoseconds kEndlessStep = Nanoseconds{1} << 62;

class Evaluator {
 public:
  enum class Result : uint8_t { kDone, kLocked, kSlow, kNoMemory };
  static constexpr double kAnyTime = 1e300;

  // Fills times, traffic and safepoints of *plan from its moves and queues; not the peaks
  // (CountPeaks). kSlow: an iteration takes longer than `most` ns, at least while the directions do
  // not slow each other down; nothing else is known then.
  Result Run(const Timeline& timeline, const Machine& machine, double most, Plan* plan);

  // Of the last Run: operations and copies gone through, and moves.
  uint64_t work() const { return work_ + CountDone(kOut) + CountDone(kIn); }
  // Of the last iteration of the last Run, per operation: waits for copies out before it.
  const Array<double>& waits_out() const { return wait_out_; }
  // Per move: the first boundary at which its copy out (in) was done without anybody waiting for
  // it, if it was done before its release (ready); otherwise that boundary.
  const Array<OpIndex>& out_done_at() const { return lines_[kOut].done_at; }
  const Array<OpIndex>& in_done_at() const { return lines_[kIn].done_at; }

 private:
  struct Copy {
    uint32_t iteration;
    uint32_t place;  // in its queue
  };
  struct Queued {
    MoveIndex move;
    uint32_t from;  // put at this boundary, if not held up by those before it
    double end;     // its mark (links.h), in the first iteration
  };
  struct Line {
    Array<Queued> queue;
    // Per boundary: the place of the last copy that has to be done, counted back from the
    // iteration's start, so below 0, if it was put in the one before.
    Array<int64_t> due;
    Array<OpIndex> done_at;  // per move
    double bytes = 0;        // of all copies in an iteration
    uint32_t put = 0;        // in this iteration
    Copy next = {0, 0};      // the first one whose end is not noted

    double Mark(const Copy& copy) const { return copy.iteration * bytes + queue[copy.place].end; }
    void Advance(Copy* copy) const {
      if (++copy->place < queue.size()) return;
      copy->place = 0;
      ++copy->iteration;
    }
  };
  static constexpr int64_t kNothingDue = INT64_MIN;

  [[nodiscard]] bool Prepare();
  [[nodiscard]] bool LineUp(Direction direction);
  [[nodiscard]] bool ListEvents();
  Result Iterate(double most);
  Result Boundary(OpIndex i);
  Result WaitFor(Direction direction, OpIndex i);
  void PutReady(Direction direction, uint32_t boundary);
  void RunOps(OpIndex from, uint32_t to);
  void NoteDone(Direction direction, OpIndex from, uint32_t to);
  bool IsSteady(double left[2]);
  uint64_t CountDone(Direction direction) const;

  const Timeline* timeline_ = nullptr;
  const Machine* machine_ = nullptr;
  Plan* plan_ = nullptr;
  Links links_;
  Line lines_[2];
  Array<bool> remaps_;     // per boundary
  Array<bool> is_event_;   // likewise: whether anything happens there
  Array<OpIndex> events_;  // those where it does
  uint32_t iteration_ = 0;
  Array<double> wait_out_;
  double stall_ = 0;
  uint64_t work_ = 0;
};

// The most bytes on the device and on the host at once. False: no host memory.
[[nodiscard]] bool CountPeaks(const Timeline& timeline, Plan* plan);
// Bytes on the host in each slot (slot i: the boundary before operation i and the operation
// itself).
[[nodiscard]] bool HostBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* host);
// Bytes on the device during each operation.
[[nodiscard]] bool DeviceBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* device);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_EVALUATE_H_
