// Implementation of interpose/futex.h. Threads: as the header says.

#include "interpose/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace tidemark::interpose {
namespace {

constexpr int64_t kSecond = 1000000000;

}  // namespace

void FutexWait(std::atomic<uint32_t>* word, uint32_t value, const timespec* timeout) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timeout, nullptr, 0);
}

void FutexWake(std::atomic<uint32_t>* word, int count) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void Mutex::LockSlow() {
  while (word_.exchange(2, std::memory_order_acquire) != 0) FutexWait(&word_, 2, nullptr);
}

void Mutex::Wake() { FutexWake(&word_, 1); }

void DrainCounter::Leave() {
  if (count_.fetch_sub(1, std::memory_order_seq_cst) == 1 &&
      waiting_.load(std::memory_order_seq_cst) != 0) {
    FutexWake(&count_, 1);
  }
}

bool DrainCounter::WaitForNone(int64_t timeout_ns) {
  const int64_t deadline = NowNs() + timeout_ns;
  waiting_.store(1, std::memory_order_seq_cst);
  uint32_t inside;
  while ((inside = count_.load(std::memory_order_seq_cst)) != 0) {
    const int64_t left = deadline - NowNs();
    if (left <= 0) break;
    const timespec timeout = {left / kSecond, left % kSecond};
    FutexWait(&count_, inside, &timeout);
  }
  waiting_.store(0, std::memory_order_seq_cst);
  return inside == 0;
}

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

}  // namespace tidemark::interpose
