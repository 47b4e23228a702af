// See start.h.

#include "interpose/start.h"

#include <pthread.h>
#include <time.h>

#include <atomic>

#include "interpose/log.h"
#include "interpose/options.h"
#include "interpose/outside.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

enum Phase : int { kNotStarted, kStarting, kStarted };
std::atomic<int> phase{kNotStarted};

void BeginAgainInChild() {
  phase.store(kNotStarted, std::memory_order_relaxed);
  ForgetAllOutside();
}

// Bounded: the starter may itself be blocked by something that the waiting thread holds.
void WaitUntilStarted() {
  constexpr timespec kPause = {0, 200 * 1000};
  constexpr int kMostPauses = 50 * 1000;
  for (int i = 0; i < kMostPauses && phase.load(std::memory_order_acquire) == kStarting; ++i) {
    nanosleep(&kPause, nullptr);
  }
}

void Start(const Guard& guard) {
  if (GetOptions().disable) return;
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  if (driver == nullptr) {
    Warn("the CUDA driver lacks %s; Tidemark is off in this process and the job runs without it",
         why);
    return;
  }
  ManagerStart(guard, *driver);
}

}  // namespace

void StartAfterInit(const Guard& guard) {
  int expected = kNotStarted;
  if (!phase.compare_exchange_strong(expected, kStarting)) return WaitUntilStarted();
  static std::atomic<bool> fork_is_watched{false};
  if (!fork_is_watched.exchange(true)) pthread_atfork(nullptr, nullptr, &BeginAgainInChild);
  Start(guard);
  phase.store(kStarted, std::memory_order_release);
}

}  // namespace tidemark::interpose
