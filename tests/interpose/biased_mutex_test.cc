// The lock of a device: exclusive while it belongs to a thread, is taken away and given again. Run
// under TSan as well, which sees through what the lock orders, but not through membarrier.

#include "interpose/biased_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tidemark::interpose {

// The owner's way in, in two halves.
class BiasedMutexPeer {
 public:
  using Place = BiasedMutex::Place;
  static Place* LooksOwn(BiasedMutex* mutex) { return mutex->LooksOwn(); }
  static bool Enter(BiasedMutex* mutex, Place* own) { return mutex->Enter(own); }
};

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

// What is done by a thread that lives on, one thing after the other.
class Actor {
 public:
  ~Actor() {
    Do([this] { ends_ = true; });
    thread_.join();
  }
  void Do(const std::function<void()>& what) {
    std::unique_lock<std::mutex> lock(mutex_);
    what_ = what;
    changed_.notify_all();
    changed_.wait(lock, [this] { return what_ == nullptr; });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!ends_) {
      changed_.wait(lock, [this] { return what_ != nullptr; });
      what_();
      what_ = nullptr;
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> what_;
  bool ends_ = false;
  std::thread thread_{[this] { Run(); }};
};

TEST_F(BiasedMutexTest, AnOwnerStoppedOnItsWayInDoesNotSpeakForTheNextOwner) {
  Actor stopped, next;
  BiasedMutexPeer::Place* own = nullptr;
  stopped.Do([&] {
    MakeOwn(&mutex_);
    own = BiasedMutexPeer::LooksOwn(&mutex_);
  });
  ASSERT_NE(own, nullptr);
  mutex_.Lock();  // takes it away
  mutex_.Unlock();
  next.Do([&] {
    for (int i = 0; i < 10; ++i) MakeOwn(&mutex_);
    ASSERT_TRUE(mutex_.owned_for_testing());
    mutex_.Lock();
  });
  stopped.Do([&] { EXPECT_FALSE(BiasedMutexPeer::Enter(&mutex_, own)); });
  EXPECT_FALSE(mutex_.TryLock()) << "the next owner is inside";
  next.Do([&] { mutex_.Unlock(); });
  EXPECT_TRUE(mutex_.TryLock());
  mutex_.Unlock();
}

// Each thread that qualifies gets a place of its own until there is none left.
TEST_F(BiasedMutexTest, StaysAnOrdinaryLockForThreadsThatFindNoPlace) {
  std::vector<std::unique_ptr<Actor>> actors;
  bool refused = false;
  for (int i = 0; i < 12; ++i) {
    actors.push_back(std::make_unique<Actor>());
    actors.back()->Do([&] {
      for (int k = 0; k < 2000 && !mutex_.owned_for_testing(); ++k) MakeOwn(&mutex_);
      refused = refused || !mutex_.owned_for_testing();
      for (int k = 0; k < 2000; ++k) mutex_.Lock(), mutex_.Unlock();  // so that it pays
    });
    mutex_.Lock();  // takes it away
    mutex_.Unlock();
  }
  EXPECT_TRUE(refused);
  mutex_.Lock();
  actors[11]->Do([&] { EXPECT_FALSE(mutex_.TryLock()); });
  mutex_.Unlock();
}

TEST_F(BiasedMutexTest, AForkedChildUsesItAndTakesItAway) {
  MakeOwn(&mutex_);
  const pid_t child = fork();
  if (child == 0) {
    mutex_.Lock();
    mutex_.Unlock();
    std::thread([this] {
      mutex_.Lock();
      mutex_.Unlock();
    }).join();
    mutex_.Lock();
    bool failed = false;
    std::thread([&] { failed = !mutex_.TryLock(); }).join();
    _exit(failed ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
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
