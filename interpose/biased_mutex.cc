// Implementation of interpose/biased_mutex.h. Threads: as the header says.

#include "interpose/biased_mutex.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tidemark::interpose {

constinit thread_local char thread_mark __attribute__((tls_model("initial-exec"))) = 0;

namespace {

// 0: not asked yet, 1: the kernel has it, 2: it does not.
std::atomic<int> has_barrier{0};

bool HasBarrier() {
  int has = has_barrier.load(std::memory_order_relaxed);
  if (has == 0) {
    const bool works =
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
    has_barrier.store(has = works ? 1 : 2, std::memory_order_relaxed);
  }
  return has == 1;
}

// Every running thread of this process has passed a full barrier since the call.
void BarrierEverywhere() {
  if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  // A filter of system calls that the job put in place meanwhile. No processor keeps a store to
  // itself for anything like this long.
  has_barrier.store(2, std::memory_order_relaxed);
  const timespec while_stores_drain = {0, 10000000};
  nanosleep(&while_stores_drain, nullptr);
}

}  // namespace

void BiasedMutex::LockSlow() {
  mutex_.Lock();
  if (own_ == nullptr) return;
  Recall();
  while (OwnerIsInside()) FutexWait(&own_->inside, 1, nullptr);
  EndOwnership();
}

bool BiasedMutex::TryLockSlow() {
  if (!mutex_.TryLock()) return false;
  if (own_ == nullptr) return true;
  Recall();
  if (OwnerIsInside()) {  // who comes next waits for it
    mutex_.Unlock();
    return false;
  }
  EndOwnership();
  return true;
}

void BiasedMutex::UnlockSlow() {
  const void* self = Self();
  if (last_ != self) {
    last_ = self;
    run_ = 0;
  } else if (++run_ >= needed_ && HasBarrier()) {
    run_ = 0;
    taken_ = 0;
    own_ = PlaceOf(self);
    owner_.store(own_, std::memory_order_release);
  }
  mutex_.Unlock();
}

// Null: all are of others.
BiasedMutex::Place* BiasedMutex::PlaceOf(const void* thread) {
  for (Place& place : places_) {
    const void* of = place.thread.load(std::memory_order_relaxed);
    if (of == nullptr) place.thread.store(of = thread, std::memory_order_relaxed);
    if (of == thread) return &place;
  }
  return nullptr;
}

// From the barrier on the owner knows, and whoever reads `inside` knows whether he came in before.
void BiasedMutex::Recall() {
  owner_.store(nullptr, std::memory_order_relaxed);
  BarrierEverywhere();
}

void BiasedMutex::EndOwnership() {
  own_ = nullptr;
  last_ = nullptr;
  if (taken_ >= kPays) {
    needed_ = kFirstRun;
  } else if (needed_ < kLongestRun) {
    needed_ *= 4;
  }
}

void BiasedMutex::WakeTaker(Place* place) { FutexWake(&place->inside, 1); }

}  // namespace tidemark::interpose
