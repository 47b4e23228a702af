// A lock and a drain counter on futexes: no allocation, no constructor, no state that another
// process could hold. Ranks: a device's lock before the session's lock before the log; two devices'
// locks in the order of their numbers.
//
// Threads: any. A forked child must not use what its parent's threads may have held.

#ifndef TIDEMARK_INTERPOSE_FUTEX_H_
#define TIDEMARK_INTERPOSE_FUTEX_H_

#include <stdint.h>
#include <time.h>

#include <atomic>

namespace tidemark::interpose {

class Mutex {
 public:
  void Lock() {
    uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 1, std::memory_order_acquire)) LockSlow();
  }
  bool TryLock() {
    uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
  }
  void Unlock() {
    if (word_.exchange(0, std::memory_order_release) == 2) Wake();
  }

 private:
  void LockSlow();
  void Wake();
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and waited for
};

// Of a Mutex or a BiasedMutex (biased_mutex.h).
template <typename AnyMutex>
class MutexLock {
 public:
  explicit MutexLock(AnyMutex* mutex) : mutex_(mutex) { mutex_->Lock(); }
  ~MutexLock() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  AnyMutex* mutex_;
};

// Gives a held lock up for as long as it lives: for waits that others must not share.
template <typename AnyMutex>
class MutexUnlock {
 public:
  explicit MutexUnlock(AnyMutex* mutex) : mutex_(mutex) { mutex_->Unlock(); }
  ~MutexUnlock() { mutex_->Lock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  AnyMutex* mutex_;
};

// Counts who is inside; one waiter at a time, who keeps newcomers out by other means (a mutex).
class DrainCounter {
 public:
  void Enter() { count_.fetch_add(1, std::memory_order_acquire); }
  void Leave();
  bool Empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // Waits until nobody is inside. False: `timeout_ns` passed first.
  bool WaitForNone(int64_t timeout_ns);

 private:
  std::atomic<uint32_t> count_{0};
  std::atomic<uint32_t> waiting_{0};
};

// Sleeps while `*word` is `value`, at most for `timeout` (null: for good); may wake early.
void FutexWait(std::atomic<uint32_t>* word, uint32_t value, const timespec* timeout);
void FutexWake(std::atomic<uint32_t>* word, int count);

// CLOCK_MONOTONIC.
int64_t NowNs();

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_FUTEX_H_
