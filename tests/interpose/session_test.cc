// A job under a daemon: chunks are leased in batches, a smaller budget is obeyed at the next call,
// the daemon's death and return change nothing for the bytes.

#include "interpose/session.h"

#include <poll.h>

#include "tests/interpose/device_memory_fixture.h"
#include "tests/interpose/fake_daemon.h"

namespace tidemark::interpose {
namespace {

class SessionTest : public DeviceMemoryFixture {
 protected:
  void SetUp() override {
    DeviceMemoryFixture::SetUp();
    daemon_.SetBudgets(8 * kMiB, 64 * kMiB);
    JobDescription job;
    job.device_count = 1;
    strcpy(job.job_name, "test");
    ASSERT_TRUE(session_->Attach(daemon_.path().c_str(), job));
  }
  void TearDown() override {
    DeviceMemoryFixture::TearDown();
    EXPECT_LE(daemon_.leased, leaked_);
  }
  // Attaching again has a pause; polls until it is over.
  bool WaitUntilAttached() {
    for (int i = 0; i < 1000; ++i) {
      session_->Check();
      if (session_->attached()) return true;
      poll(nullptr, 0, 10);
    }
    return false;
  }
  FakeDaemon daemon_;
  int leaked_ = 0;
};

TEST_F(SessionTest, LeasesInBatchesAndAsksNobodyInSteadyState) {
  ASSERT_NE(Allocate(2 * kMiB), 0u);
  EXPECT_EQ(daemon_.leased, 4);
  const int requests = daemon_.requests;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(memory_->Free(Allocate(2 * kMiB)));
  EXPECT_EQ(daemon_.requests, requests);
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(SessionTest, ObeysASmallerBudgetAtTheNextCallAndKeepsTheBytes) {
  const CUdeviceptr a = Allocate(4 * kMiB), b = Allocate(4 * kMiB);
  Fill(a, 4 * kMiB, 1);
  Fill(b, 4 * kMiB, 2);
  daemon_.SetBudgets(4 * kMiB, 64 * kMiB);
  memory_->FollowPolicy();
  EXPECT_EQ(Counters().reserved_bytes, 4 * kMiB);
  EXPECT_TRUE(Holds(a, 4 * kMiB, 1));
  EXPECT_TRUE(Holds(b, 4 * kMiB, 2));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(SessionTest, KeepsBuffersOfAClassThatPolicyWantsOnTheDevice) {
  daemon_.SetMovableClasses(uint64_t{1} << TM_WIRE_CLASS_ACTIVATION);
  const CUdeviceptr parameter = Allocate(4 * kMiB), activation = Allocate(4 * kMiB);
  memory_->Find(parameter)->kind = TM_WIRE_CLASS_PARAMETER;
  memory_->Find(activation)->kind = TM_WIRE_CLASS_ACTIVATION;
  Fill(parameter, 4 * kMiB, 1);
  Fill(activation, 4 * kMiB, 2);
  ASSERT_NE(Allocate(2 * kMiB), 0u);
  EXPECT_FALSE(memory_->OnHost(memory_->Find(parameter))) << "it is the older one";
  EXPECT_TRUE(memory_->OnHost(memory_->Find(activation)));
  EXPECT_TRUE(Holds(parameter, 4 * kMiB, 1));
  EXPECT_TRUE(Holds(activation, 4 * kMiB, 2));
}

TEST_F(SessionTest, EvictsOnRequestOnceAndGivesTheChunksBack) {
  const CUdeviceptr a = Allocate(8 * kMiB);
  Fill(a, 8 * kMiB, 1);
  daemon_.RequestEvict(4 * kMiB);
  memory_->FollowPolicy();
  memory_->FollowPolicy();
  EXPECT_EQ(Counters().evicted_chunks_total, 2u);
  EXPECT_EQ(Counters().reserved_bytes, 4 * kMiB);
  EXPECT_TRUE(Holds(a, 8 * kMiB, 1));
}

TEST_F(SessionTest, BuffersBelowTheMinimumSizeStayWhileOthersCanLeave) {
  daemon_.SetMinSize(3 * kMiB);
  const CUdeviceptr small = Allocate(2 * kMiB);
  Fill(small, 2 * kMiB, 1);
  const CUdeviceptr large = Allocate(4 * kMiB);
  Fill(large, 4 * kMiB, 2);
  Use(small);
  Use(large);
  const CUdeviceptr more = Allocate(4 * kMiB);
  ASSERT_NE(more, 0u);
  EXPECT_FALSE(memory_->OnHost(memory_->Find(small))) << "though used longest ago";
  EXPECT_TRUE(memory_->OnHost(memory_->Find(large)));
  // Only small ones are left to go: better those than out of memory.
  Use(more);
  memory_->Pin(memory_->Find(more), core::PinReason::kIpc);
  ASSERT_NE(Allocate(4 * kMiB), 0u);
  EXPECT_TRUE(Holds(small, 2 * kMiB, 1));
  EXPECT_TRUE(Holds(large, 4 * kMiB, 2));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(SessionTest, ObeysASmallerHostBudgetAsFarAsTheDeviceHasRoom) {
  const CUdeviceptr a = Allocate(8 * kMiB);
  Fill(a, 8 * kMiB, 1);
  daemon_.RequestEvict(8 * kMiB);
  memory_->FollowPolicy();
  EXPECT_EQ(Counters().host_resident_bytes, 8 * kMiB);
  daemon_.SetBudgets(4 * kMiB, 4 * kMiB);
  memory_->FollowPolicy();
  EXPECT_EQ(Counters().host_resident_bytes, 4 * kMiB);
  EXPECT_TRUE(Holds(a, 8 * kMiB, 1));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(SessionTest, AJobThatStartedAloneFindsTheDaemonLater) {
  daemon_.Die();
  session_ = std::make_unique<Session>();
  Start(8 * kMiB, 64 * kMiB);
  JobDescription job;
  job.device_count = 1;
  EXPECT_FALSE(session_->Attach(daemon_.path().c_str(), job));
  const CUdeviceptr a = Allocate(4 * kMiB);
  Fill(a, 4 * kMiB, 1);
  daemon_.ComeBack();
  ASSERT_TRUE(WaitUntilAttached());
  EXPECT_EQ(daemon_.resumed, 0u) << "no daemon knew it before";
  EXPECT_EQ(session_->reconnects(), 0u);
  EXPECT_EQ(daemon_.adopted, 2);
  EXPECT_TRUE(Holds(a, 4 * kMiB, 1));
}

TEST_F(SessionTest, OutlivesTheDaemonAndHandsItsChunksToTheNext) {
  const CUdeviceptr a = Allocate(4 * kMiB);
  Fill(a, 4 * kMiB, 1);
  daemon_.Die();
  session_->Check();
  EXPECT_FALSE(session_->attached());
  const CUdeviceptr b = Allocate(6 * kMiB);
  ASSERT_NE(b, 0u);
  Fill(b, 6 * kMiB, 2);
  EXPECT_LE(Counters().reserved_bytes, 8 * kMiB) << "alone, it keeps to the budget it knows";
  daemon_.ComeBack();
  ASSERT_TRUE(WaitUntilAttached());
  EXPECT_EQ(daemon_.resumed, 42u);
  const uint64_t held = Counters().reserved_bytes / core::kChunkBytes +
                        Counters().host_resident_bytes / core::kChunkBytes;
  EXPECT_GE(static_cast<uint64_t>(daemon_.adopted), held);
  EXPECT_EQ(session_->reconnects(), 1u);
  EXPECT_TRUE(Holds(a, 4 * kMiB, 1));
  EXPECT_TRUE(Holds(b, 6 * kMiB, 2));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(SessionTest, AnUnknownSocketMeansRunningAlone) {
  Session alone;
  EXPECT_FALSE(alone.Attach("/nonexistent/socket", JobDescription()));
  EXPECT_FALSE(alone.Ready());
  EXPECT_FALSE(alone.Attach(std::string(200, 'x').c_str(), JobDescription()));
}

}  // namespace
}  // namespace tidemark::interpose
