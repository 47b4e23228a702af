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
  uint64_t work() const { return work_ + links_[kOut].done + links_[kIn].done; }
  // Of the last iteration of the last Run, per operation: waits for copies out before it.
  const Array<double>& waits_out() const { return wait_out_; }
  // Per move: the first boundary at which its copy out (in) was done without anybody waiting for
  // it, if it was done before its release (ready); otherwise that boundary.
  const Array<OpIndex>& out_done_at() const { return links_[kOut].done_at; }
  const Array<OpIndex>& in_done_at() const { return links_[kIn].done_at; }

 private:
  struct ByOp {  // moves grouped by an operation: list[first[i] .. first[i + 1])
    Array<uint32_t> first;
    Array<MoveIndex> list;
  };
  struct Queued {
    MoveIndex move;
    OpIndex gate;  // put when this operation is done, or at the boundary before it
    double work;   // ns on the link alone
  };
  // Copies count through all iterations: iteration times the queue's length, plus the place.
  struct Link {
    Array<Queued> queue;
    Array<uint32_t> place;  // per move, in the queue
    Array<OpIndex> done_at;
    double slow = 1;  // times longer while the other link is busy
    uint64_t put = 0, done = 0, noted = 0;
    uint32_t next = 0;  // place of the next one to be put,
    uint32_t head = 0;  // of the one that is copied
    uint32_t note = 0;
    double left = 0;  // of the head, alone

    bool IsBusy() const { return done < put; }
    void Finish() {
      ++done;
      if (++head == queue.size()) head = 0;
      left = queue[head].work;
    }
  };
  [[nodiscard]] bool Group(OpIndex Move::*when, ByOp* group);
  [[nodiscard]] bool Prepare();
  [[nodiscard]] bool Line(Direction direction);
  Result Iterate(uint32_t iteration, double most);
  Result Boundary(OpIndex i);
  Result WaitFor(Direction direction, const ByOp& group, OpIndex i);
  void PutReady(Link* link, OpIndex i);
  void NoteDone(OpIndex i);
  void AdvanceTo(double time);
  void Pass(double duration);
  double NextEvent() const;
  bool WrapsBeforeWait(Direction direction, const Move& move) const;

  const Timeline* timeline_ = nullptr;
  const Machine* machine_ = nullptr;
  Plan* plan_ = nullptr;
  Link links_[2];
  ByOp by_release_, by_ready_;
  uint32_t iteration_ = 0;
  Array<double> wait_out_;
  double now_ = 0;
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
