// A lock that costs its usual thread nothing but two plain stores: no instruction that waits for
// the other processors, which is 20 ns for each time around where that thread is alone.
//
// The lock may belong to a thread that took it many times in a row. That thread says "inside" with
// a plain store and then looks whether the lock is still its own; another one takes it away first,
// then lets the kernel (membarrier) put a full barrier into every running thread of this process,
// and then waits until the owner is not inside. After the barrier either the owner's "inside" is
// seen, or the owner sees that the lock is no longer its own. A thread may be stopped for any time
// between its first look and its store, so each says "inside" in a place that is its own for good.
// Taking the lock away costs microseconds, so one that changes hands often stays an ordinary one;
// so it does where the kernel has no membarrier, and for threads that find no place left.
//
// Rank as in futex.h. Fork: no handler takes it. A forked child must not use one that its parent's
// other threads may have been inside of; others it may, for the thread that forked keeps its place,
// and the kernel's consent to the barrier is inherited (were it not: see BarrierEverywhere).
// Threads: any.

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
    Place* own = own_;
    if (own == nullptr) return UnlockSlow();
    ++taken_;
    Leave(own);
  }

  bool owned_for_testing() const { return owner_.load(std::memory_order_relaxed) != nullptr; }

 private:
  friend class BiasedMutexPeer;  // of the test

  static constexpr uint32_t kFirstRun = 64;  // times in a row after which it is given to a thread
  static constexpr uint32_t kLongestRun = 1 << 16;
  static constexpr uint32_t kPays = 1024;  // times that are worth taking it away once
  static constexpr int kPlaces = 8;
  struct Place {
    std::atomic<const void*> thread{nullptr};  // Self() of whom it is; never changes again
    std::atomic<uint32_t> inside{0};           // that thread is, or tries to be
  };

  static const void* Self() { return &thread_mark; }

  bool LockOwn() {
    Place* own = LooksOwn();
    return own != nullptr && Enter(own);
  }
  // The place of this thread, if the lock is its own; null: it is not.
  Place* LooksOwn() const {
    Place* owner = owner_.load(std::memory_order_acquire);
    const bool own = owner != nullptr && owner->thread.load(std::memory_order_relaxed) == Self();
    return own ? owner : nullptr;
  }
  bool Enter(Place* own) {
    own->inside.store(1, std::memory_order_relaxed);
    // Whoever takes the lock away makes a real barrier of this.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_acquire) == own) return true;
    Leave(own);
    return false;
  }
  void Leave(Place* own) {
    own->inside.store(0, std::memory_order_release);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (owner_.load(std::memory_order_relaxed) != own) WakeTaker(own);
  }
  void LockSlow();
  bool TryLockSlow();
  void UnlockSlow();
  static void WakeTaker(Place* place);
  Place* PlaceOf(const void* thread);
  void Recall();
  bool OwnerIsInside() const { return own_->inside.load(std::memory_order_acquire) != 0; }
  void EndOwnership();

  std::atomic<Place*> owner_{nullptr};  // whom it belongs to
  // Guarded by the lock itself.
  Place* own_ = nullptr;  // whom it belongs to, or belonged to until he is seen not to be inside
  uint32_t taken_ = 0;    // by the owner since it is his own
  Mutex mutex_;           // of all others
  const void* last_ = nullptr;
  uint32_t run_ = 0;             // how often it was taken by `last_` in a row
  uint32_t needed_ = kFirstRun;  // the run after which it is given away
  Place places_[kPlaces];
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_BIASED_MUTEX_H_
