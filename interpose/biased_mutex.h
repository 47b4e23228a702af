// A lock that costs its usual thread nothing but two plain stores: no instruction that waits for
// the other processors, which is 20 ns for each time around where that thread is alone.
//
// The lock may belong to a thread that took it many times in a row. That thread says "inside" with
// a plain store and then looks whether the lock is still its own; another one takes it away first,
// then lets the kernel (membarrier) put a full barrier into every running thread of this process,
// and then waits until the owner is not inside. After the barrier either the owner's "inside" is
// seen, or the owner sees that the lock is no longer its own. Taking it away costs microseconds, so
// a lock that changes hands often stays an ordinary one; where the kernel has no membarrier, always.
//
// Rank and fork as in futex.h. Threads: any.

#ifndef TIDEMARK_INTERPOSE_BIASED_MUTEX_H_
#define TIDEMARK_INTERPOSE_BIASED_MUTEX_H_

#include "interpose/futex.h"

namespace tidemark::interpose {

// No other living thread has this address. initial-exec: see guard.cc.
extern constinit thread_local char thread_mark __attribute__((tls_model("initial-exec")));

class BiasedMutex {
 public:
  void Lock() {
    if (!LockOwn()) LockSlow();
  }
  // False: held, or its owner is inside at present.
  bool TryLock() { return LockOwn() || TryLockSlow(); }
  void Unlock() {
    if (!owned_) return UnlockSlow();
    ++taken_;
    Leave();
  }

  bool owned_for_testing() const { return owner_.load(std::memory_order_relaxed) != nullptr; }

 private:
  static constexpr uint32_t kFirstRun = 64;       // times in a row after which it is given to a thread
  static constexpr uint32_t kLongestRun = 1 << 16;
  static constexpr uint32_t kPays = 1024;         // times that are worth taking it away once

  static const void* Self() { return &thread_mark; }

  bool LockOwn() {
    const void* self = Self();
    if (owner_.load(std::memory_order_relaxed) != self) return false;
    inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // whoever takes it away makes it a real one
    if (owner_.load(std::memory_order_acquire) == self) return true;
    Leave();
    return false;
  }
  void Leave() {
    inside_.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_relaxed) == nullptr) WakeTaker();
  }
  void LockSlow();
  bool TryLockSlow();
  void UnlockSlow();
  void WakeTaker();
  void Recall();
  bool OwnerIsInside() const { return inside_.load(std::memory_order_acquire) != 0; }
  void EndOwnership();

  std::atomic<const void*> owner_{nullptr};  // Self() of whom it belongs to
  std::atomic<uint32_t> inside_{0};          // the owner is, or tries to be
  uint32_t taken_ = 0;                       // by the owner since it is its own
  // Guarded by the lock itself.
  bool owned_ = false;  // it is, or was when the owner came in
  Mutex mutex_;         // of all others; the owner's last way in when it was taken away
  const void* last_ = nullptr;
  uint32_t run_ = 0;              // how often it was taken by `last_` in a row
  uint32_t needed_ = kFirstRun;  // the run after which it is given away
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_BIASED_MUTEX_H_
