// What a job notices of copies that a plan makes ahead of their leaving: nothing but less waiting.
// Its bytes are right, also where they were written after the copy, by work that the gate saw and
// by work that it did not.

#include <functional>

#include "tests/interpose/device_memory_fixture.h"

namespace tidemark::interpose {
namespace {

constexpr int kBuffers = 24;
constexpr core::Bytes kEach = 2 * kMiB;

class CopiesAhead : public DeviceMemoryFixture {
 protected:
  void SetUp() override {
    DeviceMemoryFixture::SetUp();
    Start(kBuffers / 2 * kEach, 2 * kBuffers * kEach);
    memory_->EnablePlanner();
    record_ = memory_->streams.Find(CU_STREAM_LEGACY, context_);
    for (int i = 0; i < kBuffers; ++i) buffers_.push_back(Allocate(kEach));
    for (int step = 0; step < 6; ++step) RunStep(step);
    memory_->FinishPlanForTesting();
  }

  // As the gate does, then work that writes the whole buffer.
  void Launch(int i, int seed, const std::function<void()>& meanwhile = nullptr) {
    MutexLock lock(&memory_->mutex);
    core::Block* block = memory_->Find(buffers_[static_cast<size_t>(i)]);
    memory_->StartCopies();
    if (meanwhile) meanwhile();
    const core::LaunchNumber launch = memory_->NextLaunch(static_cast<uint64_t>(i) + 1);
    memory_->Touch(block, launch);
    memory_->ShieldCopies(block, record_);
    memory_->EndLaunch();
    if (memory_->OnHost(block)) memory_->MakeResident(&block, 1, launch);
    Fill(buffers_[static_cast<size_t>(i)], kEach, seed);
    StreamBook::NoteWork(record_);
  }
  static int SeedOf(int step, int i) { return step * kBuffers + i; }
  void RunStep(int step) {
    for (int i = 0; i < kBuffers; ++i) Launch(i, SeedOf(step, i));
  }

  StreamRecord* record_ = nullptr;
  std::vector<CUdeviceptr> buffers_;
};

TEST_F(CopiesAhead, WhatAPlanWantsAwayLeavesWithoutAnotherWayOverTheLink) {
  for (int step = 10; step < 12; ++step) RunStep(step);
  EXPECT_GT(memory_->move_counters().left_free, 0u);
  EXPECT_LE(memory_->move_counters().left_free, memory_->move_counters().copied_ahead);
  for (int i = 0; i < kBuffers; ++i) {
    EXPECT_TRUE(Holds(buffers_[static_cast<size_t>(i)], kEach, SeedOf(11, i))) << i;
  }
  EXPECT_TRUE(memory_->Validate());
  EXPECT_EQ(Counters().hash_mismatches_total, 0u);
}

TEST_F(CopiesAhead, BytesThatNoGateSawWrittenAfterTheCopyAreNotLost) {
  const MoveCounters first = memory_->move_counters();
  for (int step = 10; step < 12; ++step) {
    for (int i = 0; i < kBuffers; ++i) {
      const int before = (i + kBuffers - 1) % kBuffers;
      Launch(i, SeedOf(step, i), [&] {
        ASSERT_EQ(real_driver.cuCtxSynchronize(), CUDA_SUCCESS);
        Fill(buffers_[static_cast<size_t>(before)], kEach, SeedOf(step, before) + 7000);
      });
    }
  }
  const MoveCounters& last = memory_->move_counters();
  EXPECT_GT(last.copied_ahead - first.copied_ahead, last.left_free - first.left_free)
      << "some were written after the copy";
  for (int i = 0; i < kBuffers - 1; ++i) {
    EXPECT_TRUE(Holds(buffers_[static_cast<size_t>(i)], kEach, SeedOf(11, i) + 7000)) << i;
  }
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(CopiesAhead, HostMemoryOfCopiesIsGivenBack) {
  for (int step = 10; step < 12; ++step) RunStep(step);
  ASSERT_GT(memory_->move_counters().copied_ahead, 0u);
  for (CUdeviceptr buffer : buffers_) ASSERT_TRUE(memory_->Free(buffer));
  memory_->DropContext(context_);
  EXPECT_TRUE(memory_->Validate());
  EXPECT_EQ(Counters().host_resident_bytes, 0u);
}

}  // namespace
}  // namespace tidemark::interpose
