// The planner inside the job, behind TIDEMARK_PLANNER: hands the learned iteration to a thread that
// plans, and answers from the finished plan whether a buffer should be away now, or will be. Advice
// for the order of eviction and return (residency.cc) and for copies ahead (ahead.cc); what the
// plan did not foresee happens on demand.
//
// Not here: the planning (core/planner.h). Threads: the device's lock is held, except in the
// planning thread, which touches one Task and nothing else.

#ifndef TIDEMARK_INTERPOSE_PLAN_FOLLOWER_H_
#define TIDEMARK_INTERPOSE_PLAN_FOLLOWER_H_

#include <atomic>

#include "core/iteration.h"
#include "core/plan.h"

namespace tidemark::interpose {

struct PlanAdvice {
  bool planned = false;    // the plan speaks of this part of the buffer
  bool away = false;       // it should be on the host now, and for some launches yet
  core::Bytes offset = 0;  // the part that is away
  core::Bytes bytes = 0;
};

class PlanFollower {
 public:
  void Enable() { enabled_ = true; }
  bool enabled() const { return enabled_; }
  // Takes a finished plan over; starts another where iteration or machine are not those of the last
  // one. Cheap otherwise. The iteration has learned.
  void Update(const core::Iteration& iteration, const core::Machine& machine,
              core::Nanoseconds launch_ns);
  // Where there is a plan for the present iteration.
  bool following(const core::Iteration& iteration) const {
    return period_ != 0 && period_ == iteration.period();
  }
  PlanAdvice Advice(const core::Iteration& iteration, const core::BufferName& buffer) const;
  // Whether the plan wants a part of `buffer` away before `launches` more have begun.
  bool LeavesWithin(const core::Iteration& iteration, const core::BufferName& buffer,
                    core::LaunchNumber launches) const;
  // Waits for the thread and takes its plan over.
  void FinishForTesting();

 private:
  // What the thread reads and writes; made for one plan, then freed by the follower.
  struct Task {
    core::Step step;
    core::Array<uint64_t> keys;
    core::Machine machine;
    core::Plan plan;
    uint32_t period = 0;
    core::LaunchNumber first_launch = 0;
    std::atomic<bool> done{false};
  };
  struct Away {
    uint64_t key;
    core::Bytes offset;
    core::Bytes bytes;
    core::OpIndex release;
    core::OpIndex reserve;
  };
  static void* Run(void* argument);
  bool Start(const core::Iteration& iteration, const core::Machine& machine,
             core::Nanoseconds launch_ns);
  void TakeOver();

  bool enabled_ = false;
  Task* task_ = nullptr;
  core::Bytes planned_budget_ = 0;
  uint32_t planned_period_ = 0;  // of the last plan asked for
  uint32_t period_ = 0;          // of the plan that is followed; 0: none
  core::LaunchNumber first_launch_ = 0;
  core::Array<Away> aways_;  // by key
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_PLAN_FOLLOWER_H_
