// What a job notices of its memory under a budget: bytes survive leaving and coming back, out of
// memory is an answer, freed memory is reused only behind its fence, and a failing driver call
// changes nothing.

#include "tests/interpose/device_memory_fixture.h"

namespace tidemark::interpose {
namespace {

using DeviceMemoryTest = DeviceMemoryFixture;

TEST_F(DeviceMemoryTest, BuffersBeyondTheBudgetKeepTheirBytes) {
  std::vector<CUdeviceptr> buffers;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(Allocate(3 * kMiB));
    ASSERT_NE(buffers.back(), 0u) << i;
    Fill(buffers.back(), 3 * kMiB, i);
  }
  EXPECT_TRUE(memory_->Validate());
  EXPECT_LE(Counters().reserved_bytes, 8 * kMiB);
  EXPECT_GE(Counters().host_resident_bytes, 16 * kMiB);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(Holds(buffers[static_cast<size_t>(i)], 3 * kMiB, i)) << i;
}

TEST_F(DeviceMemoryTest, UsedBuffersComeBackAtTheSameAddress) {
  std::vector<CUdeviceptr> buffers;
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(Allocate(4 * kMiB));
    Fill(buffers.back(), 4 * kMiB, i);
  }
  ASSERT_TRUE(memory_->OnHost(memory_->Find(buffers[0])));
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 6; ++i) {
      const CUdeviceptr buffer = buffers[static_cast<size_t>(i)];
      Use(buffer);
      EXPECT_FALSE(memory_->OnHost(memory_->Find(buffer)));
      EXPECT_TRUE(Holds(buffer, 4 * kMiB, i));
    }
  }
  EXPECT_TRUE(memory_->Validate());
  EXPECT_GT(Counters().demand_returned_chunks_total, 0u);
  EXPECT_EQ(Counters().hash_mismatches_total, 0u);
}

TEST_F(DeviceMemoryTest, AWorkingSetAboveTheBudgetIsReachedOverTheLink) {
  const CUdeviceptr large = Allocate(6 * kMiB);
  Fill(large, 6 * kMiB, 1);
  const CUdeviceptr other = Allocate(6 * kMiB);
  Fill(other, 6 * kMiB, 2);
  core::Block* both[] = {memory_->Find(large), memory_->Find(other)};
  const core::LaunchNumber launch = memory_->NextLaunch();
  for (core::Block* block : both) memory_->Touch(block, launch);
  memory_->MakeResident(both, 2, launch);
  EXPECT_EQ(Counters().host_mapped_accesses_total, 1u);
  EXPECT_TRUE(Holds(large, 6 * kMiB, 1));
  EXPECT_TRUE(Holds(other, 6 * kMiB, 2));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, AChunkThatOnlyAFreedBufferHeldIsNotMovedForAReturn) {
  const CUdeviceptr a = Allocate(4 * kMiB);
  Fill(a, 4 * kMiB, 1);
  const CUdeviceptr b = Allocate(2 * kMiB);
  Fill(b, 2 * kMiB, 2);
  const CUdeviceptr freed = Allocate(2 * kMiB);
  const CUdeviceptr c = Allocate(4 * kMiB);
  Fill(c, 4 * kMiB, 3);
  ASSERT_TRUE(memory_->OnHost(memory_->Find(a)));
  Use(b);
  Use(c);
  ASSERT_TRUE(memory_->Free(freed));
  Use(a);
  EXPECT_FALSE(memory_->OnHost(memory_->Find(a)));
  EXPECT_TRUE(Holds(a, 4 * kMiB, 1));
  EXPECT_TRUE(Holds(b, 2 * kMiB, 2));
  EXPECT_TRUE(Holds(c, 4 * kMiB, 3));
  EXPECT_TRUE(memory_->Validate());
}

// By a pointer that no gate saw, say.
TEST_F(DeviceMemoryTest, BytesWrittenOverTheLinkComeBackAsTheyAre) {
  std::vector<CUdeviceptr> buffers;
  for (int i = 0; i < 6; ++i) {
    buffers.push_back(Allocate(4 * kMiB));
    Fill(buffers.back(), 4 * kMiB, i);
  }
  for (int i = 0; i < 3; ++i) {
    const CUdeviceptr buffer = buffers[static_cast<size_t>(i)];
    ASSERT_TRUE(memory_->OnHost(memory_->Find(buffer)));
    Fill(buffer, 4 * kMiB, i + 100);
    Use(buffer);
    EXPECT_FALSE(memory_->OnHost(memory_->Find(buffer)));
    EXPECT_TRUE(Holds(buffer, 4 * kMiB, i + 100));
  }
  EXPECT_EQ(Counters().hash_mismatches_total, 0u);
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, OutOfMemoryIsAnAnswerAndRecoverable) {
  Start(8 * kMiB, 4 * kMiB);
  const CUdeviceptr a = Allocate(6 * kMiB);
  ASSERT_NE(a, 0u);
  Fill(a, 6 * kMiB, 1);
  const CUdeviceptr b = Allocate(4 * kMiB);
  ASSERT_NE(b, 0u);
  Fill(b, 4 * kMiB, 2);
  CUdeviceptr c = 0;
  EXPECT_EQ(memory_->Allocate(6 * kMiB, context_, &c), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(memory_->Allocate(100 * kMiB, context_, &c), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(Counters().ooms_total, 2u);
  EXPECT_TRUE(memory_->Validate());
  EXPECT_TRUE(Holds(a, 6 * kMiB, 1));
  EXPECT_TRUE(Holds(b, 4 * kMiB, 2));
  EXPECT_TRUE(memory_->Free(a));
  EXPECT_NE(Allocate(6 * kMiB), 0u);
  EXPECT_TRUE(Holds(b, 4 * kMiB, 2));
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, ABufferLargerThanTheBudgetIsServedWithItsRestOnTheHost) {
  const CUdeviceptr other = Allocate(6 * kMiB);
  Fill(other, 6 * kMiB, 1);
  const CUdeviceptr huge = Allocate(40 * kMiB);
  ASSERT_NE(huge, 0u);
  EXPECT_TRUE(memory_->Validate());
  EXPECT_LE(Counters().reserved_bytes, 8 * kMiB);
  Fill(huge, 40 * kMiB, 2);
  Use(huge);
  const uint64_t safepoints = Counters().safepoints_total;
  Use(huge);
  EXPECT_EQ(Counters().safepoints_total, safepoints) << "what cannot come is not waited for";
  EXPECT_TRUE(Holds(huge, 40 * kMiB, 2));
  EXPECT_TRUE(Holds(other, 6 * kMiB, 1));
  EXPECT_EQ(Counters().ooms_total, 0u);
  EXPECT_EQ(Allocate(80 * kMiB), 0u) << "more than both budgets hold";
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, PinnedBuffersStayOnTheDevice) {
  const CUdeviceptr pinned = Allocate(4 * kMiB);
  memory_->Pin(memory_->Find(pinned), core::PinReason::kIpc);
  for (int i = 0; i < 4; ++i) ASSERT_NE(Allocate(4 * kMiB), 0u);
  EXPECT_FALSE(memory_->OnHost(memory_->Find(pinned)));
  EXPECT_EQ(Counters().pinned_bytes, 4 * kMiB);
}

TEST_F(DeviceMemoryTest, NothingMovesWhileAStreamIsCaptured) {
  CUstream stream;
  ASSERT_EQ(real_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  const CUdeviceptr a = Allocate(6 * kMiB);
  memory_->streams.CaptureBegan(stream, context_);
  CUdeviceptr b = 0;
  EXPECT_EQ(memory_->Allocate(6 * kMiB, context_, &b), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(memory_->OnHost(memory_->Find(a)));
  memory_->streams.CaptureEnded(stream, context_);
  EXPECT_EQ(memory_->Allocate(6 * kMiB, context_, &b), CUDA_SUCCESS);
  EXPECT_TRUE(memory_->Validate());
  memory_->streams.Destroying(stream, context_);
  real_driver.cuStreamDestroy(stream);
}

TEST_F(DeviceMemoryTest, ReuseOfFreedMemoryMakesOtherStreamsWait) {
  CUstream streams[2];
  StreamRecord* records[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(real_driver.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    records[i] = memory_->streams.Find(streams[i], context_);
  }
  const CUdeviceptr a = Allocate(4 * kMiB);
  ASSERT_EQ(real_driver.cuMemsetD8Async(a, 1, 4 * kMiB, streams[0]), CUDA_SUCCESS);
  StreamBook::NoteWork(records[0]);
  call_counts.Reset(0);
  EXPECT_TRUE(memory_->Free(a));
  EXPECT_EQ(call_counts.of["cuEventRecord"], 0) << "a free records nothing";
  EXPECT_EQ(Allocate(4 * kMiB), a);
  EXPECT_EQ(call_counts.of["cuEventRecord"], 1);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1) << "its own stream waits for nothing";
  for (CUstream stream : streams) {
    memory_->streams.Destroying(stream, context_);
    real_driver.cuStreamDestroy(stream);
  }
}

TEST_F(DeviceMemoryTest, SteadyStateCallsTheDriverForNothing) {
  for (int i = 0; i < 3; ++i) memory_->Free(Allocate(3 * kMiB));
  call_counts.Reset(0);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(memory_->Free(Allocate(3 * kMiB)));
  EXPECT_EQ(call_counts.all, 0);
}

TEST_F(DeviceMemoryTest, MemInfoAnswersFromTheBudget) {
  size_t free_bytes, total_bytes;
  memory_->MemInfo(&free_bytes, &total_bytes);
  EXPECT_EQ(total_bytes, 8 * kMiB);
  EXPECT_EQ(free_bytes, 8 * kMiB);
  Allocate(3 * kMiB);
  memory_->MemInfo(&free_bytes, &total_bytes);
  EXPECT_EQ(free_bytes, 4 * kMiB);
}

TEST_F(DeviceMemoryTest, MakesRoomForMemoryOfTheDriver) {
  const CUdeviceptr a = Allocate(6 * kMiB);
  Fill(a, 6 * kMiB, 1);
  EXPECT_TRUE(memory_->MakeRoom(6 * kMiB));
  memory_->CountPassedThrough(6 * kMiB, 1);
  EXPECT_LE(Counters().reserved_bytes, 2 * kMiB);
  EXPECT_TRUE(Holds(a, 6 * kMiB, 1));
  EXPECT_FALSE(memory_->MakeRoom(4 * kMiB));
  memory_->CountPassedThrough(6 * kMiB, -1);
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, LosingTheLastContextGivesEverythingBack) {
  for (int i = 0; i < 5; ++i) Allocate(3 * kMiB);
  memory_->DropContext(context_);
  EXPECT_EQ(Counters().allocated_bytes, 0u);
  EXPECT_TRUE(memory_->Validate());
  EXPECT_NE(Allocate(3 * kMiB), 0u);
}

// Every driver call of a run that evicts, returns, frees and reuses fails once, alone.
TEST_F(DeviceMemoryTest, ADestroyedContextTakesItsBuffersAndLeavesThoseOfPools) {
  CUdeviceptr pooled = 0;
  const auto other = reinterpret_cast<CUcontext>(uintptr_t{0x1234});
  CUdeviceptr others = 0;
  ASSERT_EQ(memory_->Allocate(kMiB, other, &others), CUDA_SUCCESS);
  ASSERT_EQ(memory_->Allocate(kMiB, other, &pooled, true), CUDA_SUCCESS);
  const CUdeviceptr own = Allocate(kMiB);
  ASSERT_NE(own, 0u);
  memory_->DropContext(other);
  EXPECT_EQ(memory_->Find(others), nullptr);
  EXPECT_NE(memory_->Find(pooled), nullptr);
  EXPECT_NE(memory_->Find(own), nullptr);
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(DeviceMemoryTest, BufferIdsAreNeverUsedAgain) {
  std::vector<uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    const CUdeviceptr address = Allocate(kMiB);
    ids.push_back(memory_->Find(address)->tag);
    ASSERT_TRUE(memory_->Free(address));
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_GT(ids.front(), uint64_t{1} << 61) << "apart from the driver's own";
}

TEST_F(DeviceMemoryTest, WhatTheDriverLacksIsGivenBackWithinTheBudgetToo) {
  const CUdeviceptr kept = Allocate(4 * kMiB);
  Fill(kept, 4 * kMiB, 3);
  ASSERT_TRUE(memory_->GiveBack(4 * kMiB));
  EXPECT_LE(Counters().reserved_bytes, 4 * kMiB);
  EXPECT_TRUE(Holds(kept, 4 * kMiB, 3));
  EXPECT_LE(Counters().active_bytes, Counters().reserved_bytes) << "what left is not active";
}

TEST_F(DeviceMemoryTest, AFailureOfAnyDriverCallLeavesTheBytesAndTheBooksWhole) {
  int last = 0;
  for (int n = 1; n <= 400; ++n) {
    Start(4 * kMiB, 64 * kMiB);
    std::vector<CUdeviceptr> buffers;
    call_counts.Reset(n);
    for (int i = 0; i < 3; ++i) {
      const CUdeviceptr buffer = Allocate(2 * kMiB);
      if (buffer == 0) continue;
      buffers.push_back(buffer);
      Fill(buffer, 2 * kMiB, static_cast<int>(buffers.size()));
    }
    for (CUdeviceptr buffer : buffers) Use(buffer);
    if (!buffers.empty()) Use(buffers[0]);
    const std::string failed = call_counts.failed;
    const int calls = call_counts.all;
    call_counts.Reset(0);
    ASSERT_TRUE(memory_->Validate()) << n << " " << failed;
    ASSERT_FALSE(memory_->broken()) << n << " " << failed;
    ASSERT_GE(buffers.size(), 2u) << n << " " << failed;
    for (size_t i = 0; i < buffers.size(); ++i) {
      ASSERT_TRUE(Holds(buffers[i], 2 * kMiB, static_cast<int>(i) + 1)) << n << " " << failed;
    }
    for (CUdeviceptr buffer : buffers) ASSERT_TRUE(memory_->Free(buffer));
    ASSERT_NE(Allocate(4 * kMiB), 0u) << n << " " << failed;
    last = calls;
    if (failed.empty()) break;
  }
  EXPECT_GT(last, 60);
  EXPECT_LT(last, 400) << "every call had its turn";
}

}  // namespace
}  // namespace tidemark::interpose
