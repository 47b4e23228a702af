// The lock of a device: exclusive while it belongs to a thread, is taken away and given again. Run
// under TSan as well, which sees through what the lock orders, but not through membarrier.

#include "interpose/biased_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tidemark::interpose {
namespace {

// Takes it often enough in a row that it becomes the thread's own.
void MakeOwn(BiasedMutex* mutex) {
  for (int i = 0; i < 100 && !mutex->owned_for_testing(); ++i) {
    mutex->Lock();
    mutex->Unlock();
  }
}

bool KernelHasBarrier() {
  BiasedMutex mutex;
  MakeOwn(&mutex);
  return mutex.owned_for_testing();
}

class BiasedMutexTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!KernelHasBarrier()) GTEST_SKIP() << "needs a kernel with membarrier (4.14, not filtered)";
  }
  BiasedMutex mutex_;
};

TEST_F(BiasedMutexTest, BelongsToAThreadThatTakesItInARow) {
  EXPECT_FALSE(mutex_.owned_for_testing());
  MakeOwn(&mutex_);
  EXPECT_TRUE(mutex_.owned_for_testing());
}

TEST_F(BiasedMutexTest, AnotherThreadTakesItAway) {
  MakeOwn(&mutex_);
  std::thread([&] {
    mutex_.Lock();
    EXPECT_FALSE(mutex_.owned_for_testing());
    mutex_.Unlock();
  }).join();
  mutex_.Lock();
  mutex_.Unlock();
}

TEST_F(BiasedMutexTest, WhoeverTakesItAwayWaitsForTheOwner) {
  MakeOwn(&mutex_);
  mutex_.Lock();
  bool owner_left = false;  // guarded by the lock
  std::atomic<bool> starts{false};
  std::thread other([&] {
    starts = true;
    mutex_.Lock();
    EXPECT_TRUE(owner_left);
    mutex_.Unlock();
  });
  while (!starts || mutex_.owned_for_testing()) std::this_thread::yield();
  owner_left = true;
  mutex_.Unlock();
  other.join();
}

TEST_F(BiasedMutexTest, TryLockFailsWhileTheOwnerIsInside) {
  MakeOwn(&mutex_);
  mutex_.Lock();
  std::thread([&] { EXPECT_FALSE(mutex_.TryLock()); }).join();
  mutex_.Unlock();
  std::thread([&] {
    EXPECT_TRUE(mutex_.TryLock());
    mutex_.Unlock();
  }).join();
  EXPECT_TRUE(mutex_.TryLock());
  mutex_.Unlock();
}

TEST_F(BiasedMutexTest, OneTakenAwayForLittleIsGivenAgainLater) {
  MakeOwn(&mutex_);
  std::thread([&] {
    mutex_.Lock();
    mutex_.Unlock();
  }).join();
  MakeOwn(&mutex_);
  EXPECT_FALSE(mutex_.owned_for_testing());
  MakeOwn(&mutex_);
  MakeOwn(&mutex_);
  EXPECT_TRUE(mutex_.owned_for_testing());
}

// Bursts of one thread, so that it becomes its own again and again while others want it.
TEST_F(BiasedMutexTest, ExcludesWhileItChangesHands) {
  constexpr int kThreads = 4;
  constexpr uint64_t kBursts = 200, kInARow = 2000;
  uint64_t sum = 0;  // guarded by the lock
  uint64_t copies[4] = {};
  std::atomic<uint64_t> tried{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < kBursts * kInARow; ++i) {
        if (i % 7 == 0) {
          if (!mutex_.TryLock()) continue;
        } else {
          mutex_.Lock();
        }
        EXPECT_TRUE(copies[0] == sum && copies[1] == sum && copies[2] == sum && copies[3] == sum);
        ++sum;
        for (uint64_t& copy : copies) copy = sum;
        ++tried;
        mutex_.Unlock();
        if (i % kInARow == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, tried.load());
}

}  // namespace
}  // namespace tidemark::interpose
