// Host callbacks: they run on one thread of the driver, without the driver lock, so that a callback
// may wait for what the submitting thread holds. See engine_state.h.

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>
#include <utility>

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
  const std::lock_guard<std::mutex> own(callback_mutex_);
  callbacks_.push_back(node);
  callback_wanted_.notify_one();
}

void Engine::WaitForProgress(Lock& lock) {
  lock.unlock();
  {
    std::unique_lock<std::mutex> own(callback_mutex_);
    callback_done_.wait_for(own, std::chrono::microseconds(200),
                            [this] { return !called_.empty(); });
  }
  lock.lock();
  CollectCallbacks();
}

void Engine::CollectCallbacks() {
  std::vector<NodePtr> called;
  {
    const std::lock_guard<std::mutex> own(callback_mutex_);
    called.swap(called_);
  }
  for (const NodePtr& node : called) {
    if (!node->executed) Finish(node);
  }
}

void Engine::CallbackThread() {
  for (;;) {
    NodePtr node;
    {
      std::unique_lock<std::mutex> own(callback_mutex_);
      callback_wanted_.wait_for(own, kHostIdle, [this] { return !callbacks_.empty(); });
      if (!callbacks_.empty()) {
        node = std::move(callbacks_.front());
        callbacks_.pop_front();
      }
    }
    if (node) {
      RunCallback(node);
    } else if (GetConfig().adversarial) {
      Lock lock(DriverLock(), std::try_to_lock);
      if (lock.owns_lock()) ProgressWhileHostIdles(lock);
    }
  }
}

void Engine::RunCallback(const NodePtr& node) {
  if (node->op.run) node->op.run(node->op);
  {
    const std::lock_guard<std::mutex> own(callback_mutex_);
    called_.push_back(node);
  }
  callback_done_.notify_all();
  Lock lock(DriverLock());
  CollectCallbacks();
  Pump(lock);
}

void Engine::ProgressWhileHostIdles(Lock& lock) {
  if (entries_ != std::exchange(entries_seen_, entries_) || open_callbacks_ == 0) return;
  for (auto& [sequence, node] : pending_) {
    if (!node->op.host_callback || node->running) continue;
    const uint64_t mark = ++mark_;
    MarkNeeded({node}, mark);
    if (const NodePtr next = TakeAdversarial(mark, false)) Execute(next, lock);
    return;
  }
}

}  // namespace simgpu
