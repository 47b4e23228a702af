#include "daemon/shared_page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <thread>

namespace tidemark::daemon {
namespace {

TEST(PolicyPage, CannotBeWrittenByAJobByAnyDoor) {
  PolicyPage page = *PolicyPage::Create();
  const size_t bytes = sizeof(tm_wire_policy_page);
  EXPECT_EQ(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, page.fd(), 0), MAP_FAILED);
  void* readable = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, page.fd(), 0);
  ASSERT_NE(readable, MAP_FAILED);
  EXPECT_NE(mprotect(readable, bytes, PROT_READ | PROT_WRITE), 0);
  EXPECT_LT(write(page.fd(), "x", 1), 0);
  const std::string door = "/proc/self/fd/" + std::to_string(page.fd());
  const int again = open(door.c_str(), O_RDWR | O_CLOEXEC);
  if (again >= 0) {
    EXPECT_EQ(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0), MAP_FAILED);
    close(again);
  }
  munmap(readable, bytes);
}

TEST(SharedPages, CannotBeShrunkUnderTheOtherSide) {
  PolicyPage policy = *PolicyPage::Create();
  CounterPage counters = *CounterPage::Create();
  for (const int fd : {policy.fd(), counters.fd()}) {
    EXPECT_NE(ftruncate(fd, 0), 0);
    EXPECT_NE(ftruncate(fd, 1 << 20), 0);
    EXPECT_NE(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
  }
}

TEST(PolicyPage, IsSeenWholeByAReaderBesideTheWriter) {
  PolicyPage page = *PolicyPage::Create();
  const auto* shared = static_cast<const tm_wire_policy_page*>(
      mmap(nullptr, sizeof(tm_wire_policy_page), PROT_READ, MAP_SHARED, page.fd(), 0));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    tm_wire_policy_page content = {};
    for (uint64_t i = 1; i < 20000; ++i) {
      content.generation = i;
      content.device[15].host_budget_bytes = i;
      page.Write(content);
    }
    stop = true;
  });
  uint64_t seen = 0;
  while (!stop) {
    const uint64_t before = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
    const uint64_t generation = __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE);
    const uint64_t last = __atomic_load_n(&shared->device[15].host_budget_bytes, __ATOMIC_ACQUIRE);
    const uint64_t after = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
    if (before != after || before % 2 != 0) continue;
    ASSERT_EQ(generation, last);
    ASSERT_GE(generation, seen);
    seen = generation;
  }
  writer.join();
  munmap(const_cast<tm_wire_policy_page*>(shared), sizeof(tm_wire_policy_page));
}

class JobsCounters : public ::testing::Test {
 protected:
  void SetUp() override {
    job_ = static_cast<tm_wire_counters_page*>(mmap(
        nullptr, sizeof(tm_wire_counters_page), PROT_READ | PROT_WRITE, MAP_SHARED, page_.fd(), 0));
    job_->magic = TM_WIRE_MAGIC;
    job_->version = TM_WIRE_PAGE_VERSION;
  }
  void TearDown() override { munmap(job_, sizeof(tm_wire_counters_page)); }

  CounterPage page_ = *CounterPage::Create();
  tm_wire_counters_page* job_ = nullptr;
};

TEST_F(JobsCounters, AreRead) {
  job_->device[3].requested_bytes = 7;
  job_->daemon_round_trips_total = 5;
  job_->sequence = 2;
  EXPECT_EQ(page_.Read().device[3].requested_bytes, 7u);
  EXPECT_EQ(page_.Read().daemon_round_trips_total, 5u);
}

TEST_F(JobsCounters, AreNotReadWhileBeingWritten) {
  job_->device[0].active_bytes = 7;
  job_->sequence = 2;
  page_.Read();
  job_->sequence = 3;
  job_->device[0].active_bytes = 8;
  EXPECT_EQ(page_.Read().device[0].active_bytes, 7u) << "a job that died while writing";
}

TEST_F(JobsCounters, AreIgnoredWhenForeign) {
  job_->device[0].active_bytes = 7;
  job_->version = 99;
  EXPECT_EQ(page_.Read().device[0].active_bytes, 0u);
}

TEST_F(JobsCounters, AreMadeSane) {
  job_->device[0].requested_bytes = UINT64_MAX;
  job_->device[0].launches_total = 100;
  page_.Read();
  job_->device[0].launches_total = 3;
  EXPECT_EQ(page_.Read().device[0].requested_bytes, CounterPage::kMostBytes);
  EXPECT_EQ(page_.Read().device[0].launches_total, 100u) << "totals never fall";
}

}  // namespace
}  // namespace tidemark::daemon
