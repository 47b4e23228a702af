// Implementation of interpose/plan_follower.h. Threads: as the header says.

#include "interpose/plan_follower.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <new>

#include "core/planner.h"

namespace tidemark::interpose {

void* PlanFollower::Run(void* argument) {
  auto* task = static_cast<Task*>(argument);
  core::MakePlan(task->step, task->machine, core::PlanGoal(), &task->plan);
  task->done.store(true, std::memory_order_release);
  return nullptr;
}

// No signal of the job is handled on the thread; it ends with the plan, or with the process.
bool PlanFollower::Start(const core::Iteration& iteration, const core::Machine& machine,
                         core::Nanoseconds launch_ns) {
  Task* task = new (std::nothrow) Task;
  if (task == nullptr) return false;
  task->machine = machine;
  task->period = iteration.period();
  if (!iteration.Describe(launch_ns, &task->step, &task->keys, &task->first_launch)) {
    delete task;
    return false;
  }
  task_ = task;
  sigset_t all, before;
  sigfillset(&all);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(&thread, &attributes, &Run, task) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!started) {
    delete task;
    task_ = nullptr;
  }
  return started;
}

void PlanFollower::TakeOver() {
  aways_.Clear();
  period_ = 0;
  const core::Plan& plan = task_->plan;
  bool good = plan.outcome == core::PlanOutcome::kPlanned && aways_.Reserve(plan.moves.size());
  for (size_t i = 0; good && i < plan.moves.size(); ++i) {
    const core::Move& move = plan.moves[i];
    good = aways_.Append(
        {task_->keys[move.buffer], move.offset, move.bytes, move.release, move.reserve});
  }
  std::sort(aways_.begin(), aways_.end(), [](const Away& a, const Away& b) {
    return a.key != b.key ? a.key < b.key : a.release < b.release;
  });
  if (good) {
    period_ = task_->period;
    first_launch_ = task_->first_launch;
  }
  delete task_;
  task_ = nullptr;
}

void PlanFollower::Update(const core::Iteration& iteration, const core::Machine& machine,
                          core::Nanoseconds launch_ns) {
  if (!enabled_) return;
  if (task_ != nullptr) {
    if (!task_->done.load(std::memory_order_acquire)) return;
    TakeOver();
  }
  if (iteration.period() == 0) return;
  if (planned_period_ == iteration.period() && planned_budget_ == machine.device_budget) return;
  planned_period_ = iteration.period();
  planned_budget_ = machine.device_budget;
  Start(iteration, machine, launch_ns);
}

void PlanFollower::FinishForTesting() {
  if (task_ == nullptr) return;
  while (!task_->done.load(std::memory_order_acquire)) sched_yield();
  TakeOver();
}

bool PlanFollower::LeavesWithin(const core::Iteration& iteration, const core::BufferName& buffer,
                                core::LaunchNumber launches) const {
  const uint64_t key = iteration.KeyOf(buffer);
  const Away* away = std::lower_bound(aways_.begin(), aways_.end(), key,
                                      [](const Away& a, uint64_t k) { return a.key < k; });
  const auto op = static_cast<core::OpIndex>((iteration.now() - first_launch_) % period_);
  for (; away != aways_.end() && away->key == key; ++away) {
    const core::OpIndex in = (away->release + period_ - op) % period_;
    if ((in == 0 ? period_ : in) <= launches) return true;
  }
  return false;
}

PlanAdvice PlanFollower::Advice(const core::Iteration& iteration,
                                const core::BufferName& buffer) const {
  PlanAdvice advice;
  const uint64_t key = iteration.KeyOf(buffer);
  const Away* away = std::lower_bound(aways_.begin(), aways_.end(), key,
                                      [](const Away& a, uint64_t k) { return a.key < k; });
  const auto since = iteration.now() - first_launch_;
  const auto op = static_cast<core::OpIndex>(since % period_);
  for (; away != aways_.end() && away->key == key; ++away) {
    advice.planned = true;
    const bool wraps = away->reserve < away->release;
    const bool inside = wraps ? op >= away->release || op < away->reserve
                              : op >= away->release && op < away->reserve;
    if (!inside) continue;
    advice.away = true;
    advice.offset = away->offset;
    advice.bytes = away->bytes;
    return advice;
  }
  return advice;
}

}  // namespace tidemark::interpose
