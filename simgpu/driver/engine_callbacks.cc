// Host callbacks: they run on one thread of the driver, without the driver lock, so that a callback
// may wait for what the submitting thread holds. See engine_state.h.

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "simgpu/driver/engine_state.h"

namespace simgpu {
namespace {

// A real device runs queued work whether or not the host ever synchronises. In adversarial order
// nothing would, so work before a callback goes on once the host has been away for this long.
constexpr std::chrono::milliseconds kHostIdle{20};

}  // namespace

void Engine::StartCallbackThread() {
  if (callback_thread_) return;
  callback_thread_ = true;
  // The job's signal handlers must not run on a thread it does not know.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { CallbackThread(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Engine::HandToCallbackThread(const NodePtr& node) {
  node->running = true;
  callbacks_.push_back(node);
  callback_wanted_.notify_one();
}

void Engine::CallbackThread() {
  Lock lock(DriverLock());
  for (;;) {
    if (!callbacks_.empty()) {
      RunCallback(lock);
    } else if (GetConfig().adversarial && open_callbacks_ > 0) {
      ProgressWhileHostIdles(lock);
    } else {
      callback_wanted_.wait_for(lock, std::chrono::seconds(1));
    }
  }
}

void Engine::RunCallback(Lock& lock) {
  const NodePtr node = callbacks_.front();
  callbacks_.pop_front();
  lock.unlock();
  if (node->op.run) node->op.run(node->op);
  lock.lock();
  if (!node->executed) Finish(node);
  Pump(lock);
  progress_.notify_all();
}

void Engine::ProgressWhileHostIdles(Lock& lock) {
  const uint64_t entries = entries_;
  callback_wanted_.wait_for(lock, kHostIdle);
  if (entries != entries_ || !callbacks_.empty()) return;
  for (auto& [sequence, node] : pending_) {
    if (!node->op.host_callback || node->running) continue;
    const uint64_t mark = ++mark_;
    MarkNeeded({node}, mark);
    if (const NodePtr next = TakeAdversarial(mark, false)) Execute(next, lock);
    return;
  }
}

}  // namespace simgpu
