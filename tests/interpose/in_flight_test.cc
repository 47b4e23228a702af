// What a job notices whose host runs ahead of the device: memory that it freed is moved and given
// out again at once, without a wait on the host, and no work that was given before is overtaken.

#include "tests/interpose/device_memory_fixture.h"

namespace tidemark::interpose {
namespace {

constexpr core::Bytes kGap = 8 * kMiB;

class InFlightTest : public DeviceMemoryFixture {
 protected:
  void SetUp() override {
    DeviceMemoryFixture::SetUp();
    for (CUstream& stream : streams_) {
      ASSERT_EQ(real_driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    }
    Begin(0);
  }
  void TearDown() override {
    DeviceMemoryFixture::TearDown();
    for (CUstream stream : streams_) real_driver.cuStreamDestroy(stream);
  }

  // Nine chunks of memory, one of them in use between two gaps of four: the lower one was freed
  // while stream 0 had yet to write it, the other one is nobody's.
  void Begin(core::Bytes host_budget, CUdeviceptr flag = 0) {
    Start(18 * kMiB, host_budget);
    for (int i = 0; i < 2; ++i) records_[i] = memory_->streams.Find(streams_[i], context_);
    const CUdeviceptr low = Allocate(kGap);
    kept_ = Allocate(2 * kMiB);
    const CUdeviceptr high = Allocate(kGap);
    ASSERT_NE(high, 0u);
    Fill(kept_, 2 * kMiB, 1);
    ASSERT_TRUE(memory_->Free(high));
    memory_->streams.AllIdle();
    if (flag != 0) WaitFor(flag);
    Set(0, low, kGap, 1);
    ASSERT_TRUE(memory_->Free(low));
    gap_ = low;
    call_counts.Reset(0);
  }

  // Stream 0 goes on when the host has written 1 there.
  void WaitFor(CUdeviceptr flag) {
    using WaitValue = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
    const auto wait = reinterpret_cast<WaitValue>(
        dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuStreamWaitValue32_v2"));
    ASSERT_NE(wait, nullptr);
    ASSERT_EQ(wait(streams_[0], flag, 1, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS);
  }

  // As behind the gate.
  void Set(int stream, CUdeviceptr address, core::Bytes bytes, unsigned char value) {
    memory_->streams.BeforeWork(records_[stream]);
    ASSERT_EQ(real_driver.cuMemsetD8Async(address, value, bytes, streams_[stream]), CUDA_SUCCESS);
    StreamBook::NoteWork(records_[stream]);
  }

  // Once both streams are done, the later one first.
  void ExpectAll(CUdeviceptr address, core::Bytes bytes, char value, int later) {
    ASSERT_EQ(real_driver.cuStreamSynchronize(streams_[later]), CUDA_SUCCESS);
    ASSERT_EQ(real_driver.cuStreamSynchronize(streams_[1 - later]), CUDA_SUCCESS);
    std::vector<char> got(bytes);
    ASSERT_EQ(real_driver.cuMemcpyDtoHAsync(got.data(), address, bytes, streams_[later]),
              CUDA_SUCCESS);
    ASSERT_EQ(real_driver.cuStreamSynchronize(streams_[later]), CUDA_SUCCESS);
    EXPECT_EQ(std::count(got.begin(), got.end(), value), static_cast<long>(bytes));
  }

  CUstream streams_[2] = {};
  StreamRecord* records_[2] = {};
  CUdeviceptr kept_ = 0;
  CUdeviceptr gap_ = 0;
};

TEST_F(InFlightTest, FreedMemoryServesALargerRequestWithoutAWaitOnTheHost) {
  const CUdeviceptr large = Allocate(2 * kGap);
  ASSERT_NE(large, 0u);
  EXPECT_EQ(call_counts.of["cuCtxSynchronize"], 0);
  EXPECT_EQ(call_counts.of["cuEventSynchronize"], 0);
  EXPECT_EQ(call_counts.of["cuMemUnmap"], 0) << "stream 0 still writes there";
  EXPECT_EQ(Counters().safepoints_total, 0u);
  EXPECT_LE(Counters().reserved_bytes, 18 * kMiB);
  Set(1, large, 2 * kGap, 2);
  ExpectAll(large, 2 * kGap, 2, 1);
  EXPECT_TRUE(Holds(kept_, 2 * kMiB, 1));
  EXPECT_TRUE(memory_->Validate());
}

// Were there a wait, this would never end.
TEST_F(InFlightTest, AJobWhoseDeviceWaitsForItsHostGetsMemoryAndGoesOn) {
  void* flag = nullptr;
  ASSERT_EQ(real_driver.cuMemHostAlloc(&flag, sizeof(cuuint32_t), 0), CUDA_SUCCESS);
  *static_cast<cuuint32_t*>(flag) = 0;
  Begin(0, reinterpret_cast<CUdeviceptr>(flag));
  const CUdeviceptr large = Allocate(2 * kGap);
  ASSERT_NE(large, 0u);
  Set(1, large, 2 * kGap, 2);
  *static_cast<volatile cuuint32_t*>(flag) = 1;
  ExpectAll(large, 2 * kGap, 2, 1);
  ASSERT_EQ(real_driver.cuMemFreeHost(flag), CUDA_SUCCESS);
}

TEST_F(InFlightTest, TheStreamThatUsedItGoesOnWithoutAWaitToo) {
  const CUdeviceptr large = Allocate(2 * kGap);
  ASSERT_NE(large, 0u);
  Set(0, large, 2 * kGap, 2);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1) << "of the other stream";
  ExpectAll(large, 2 * kGap, 2, 0);
}

TEST_F(InFlightTest, TheOldMappingGoesOnceTheWorkIsDone) {
  const CUdeviceptr large = Allocate(2 * kGap);
  ASSERT_NE(large, 0u);
  ASSERT_EQ(real_driver.cuCtxSynchronize(), CUDA_SUCCESS);
  ASSERT_TRUE(memory_->Free(large));
  memory_->DropContext(context_);
  EXPECT_EQ(Counters().free_mapped_bytes, 0u);
  EXPECT_NE(real_driver.cuMemUnmap(gap_, 2 * kMiB), CUDA_SUCCESS) << "nothing is mapped there";
  EXPECT_TRUE(memory_->Validate());
}

TEST_F(InFlightTest, WhatCameIntoMovedMemoryLeavesForTheHostAndComesBackWhole) {
  Begin(64 * kMiB);
  const CUdeviceptr large = Allocate(2 * kGap);
  ASSERT_NE(large, 0u);
  ASSERT_FALSE(memory_->OnHost(memory_->Find(large)));
  memory_->streams.BeforeWork(records_[1]);
  Set(1, large, 2 * kGap, 2);
  const CUdeviceptr other = Allocate(kGap);
  ASSERT_NE(other, 0u);
  ASSERT_TRUE(memory_->OnHost(memory_->Find(large)));
  Fill(other, kGap, 3);
  ExpectAll(large, 2 * kGap, 2, 1);
  EXPECT_TRUE(Holds(other, kGap, 3));
  EXPECT_TRUE(memory_->Validate());
}

// All memory there is was freed in the order of stream 0, which has yet to write it.
class StreamOrderTest : public InFlightTest {
 protected:
  void SetUp() override {
    InFlightTest::SetUp();
    Start(kGap, 0);
    for (int i = 0; i < 2; ++i) records_[i] = memory_->streams.Find(streams_[i], context_);
    gap_ = AllocateOn(0);
    Set(0, gap_, kGap, 1);
    ASSERT_TRUE(memory_->Free(gap_, IdOf(streams_[0])));
    call_counts.Reset(0);
  }
  core::StreamId IdOf(CUstream stream) { return memory_->streams.IdOf(stream, context_); }
  CUdeviceptr AllocateOn(int stream) {
    CUdeviceptr address = 0;
    memory_->Allocate(kGap, context_, &address, true, IdOf(streams_[stream]));
    return address;
  }
};

TEST_F(StreamOrderTest, TheSameStreamUsesItAgainWithoutAnEvent) {
  EXPECT_EQ(AllocateOn(0), gap_);
  EXPECT_EQ(call_counts.all, 0);
  Set(0, gap_, kGap, 2);
  ExpectAll(gap_, kGap, 2, 0);
}

TEST_F(StreamOrderTest, AnotherStreamWaitsForItAndNoThirdOne) {
  CUstream third;
  ASSERT_EQ(real_driver.cuStreamCreate(&third, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  memory_->streams.Created(third, context_);
  call_counts.Reset(0);
  EXPECT_EQ(AllocateOn(1), gap_);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1);
  Set(1, gap_, kGap, 2);
  ExpectAll(gap_, kGap, 2, 1);
  memory_->streams.Destroying(third, context_);
  real_driver.cuStreamDestroy(third);
}

TEST_F(StreamOrderTest, MemoryOfNoStreamIsWaitedForByAll) {
  call_counts.Reset(0);
  EXPECT_EQ(Allocate(kGap), gap_);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1) << "of stream 1; stream 0 waits for itself";
  Set(1, gap_, kGap, 2);
  ExpectAll(gap_, kGap, 2, 1);
}

TEST_F(StreamOrderTest, MemoryOfNoStreamIsNotTakenForThatOfTheStreamItIsFreedOn) {
  const CUdeviceptr plain = Allocate(kGap);
  Set(1, plain, kGap, 1);
  ASSERT_TRUE(memory_->Free(plain, IdOf(streams_[0])));
  call_counts.Reset(0);
  EXPECT_EQ(AllocateOn(0), plain);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1);
  Set(0, plain, kGap, 2);
  ExpectAll(plain, kGap, 2, 0);
}

TEST_F(StreamOrderTest, AStreamThatCameLaterIsNotTakenForADestroyedOne) {
  const core::StreamId former = IdOf(streams_[0]);
  memory_->streams.Destroying(streams_[0], context_);
  ASSERT_EQ(real_driver.cuStreamDestroy(streams_[0]), CUDA_SUCCESS);
  ASSERT_EQ(real_driver.cuStreamCreate(&streams_[0], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  memory_->streams.Created(streams_[0], context_);
  records_[0] = memory_->streams.Find(streams_[0], context_);
  EXPECT_NE(IdOf(streams_[0]), former);
  call_counts.Reset(0);
  EXPECT_EQ(AllocateOn(0), gap_);
  EXPECT_EQ(call_counts.of["cuStreamWaitEvent"], 1);
  Set(0, gap_, kGap, 2);
  ExpectAll(gap_, kGap, 2, 0);
}

TEST_F(StreamOrderTest, NoOrderIsTakenForGrantedWhereNoneIsKnown) {
  EXPECT_EQ(IdOf(CU_STREAM_PER_THREAD), core::kAnyStream) << "it is another one in each thread";
  EXPECT_EQ(IdOf(reinterpret_cast<CUstream>(uintptr_t{0x1234})), core::kAnyStream);
  memory_->streams.CaptureBegan(streams_[0], context_);
  EXPECT_EQ(IdOf(streams_[0]), core::kAnyStream) << "its work does not run now";
  memory_->streams.CaptureEnded(streams_[0], context_);
  EXPECT_NE(IdOf(streams_[0]), core::kAnyStream);
}

TEST_F(InFlightTest, NothingMovesInFlightWhileAStreamIsCaptured) {
  memory_->streams.CaptureBegan(streams_[1], context_);
  CUdeviceptr large = 0;
  EXPECT_EQ(memory_->Allocate(2 * kGap, context_, &large), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(call_counts.of["cuMemMap"], 0);
  memory_->streams.CaptureEnded(streams_[1], context_);
  EXPECT_NE(Allocate(2 * kGap), 0u);
}

TEST_F(InFlightTest, AFailureOfAnyDriverCallLeavesTheBytesAndTheBooksWhole) {
  int last = 0;
  for (int n = 1; n <= 100; ++n) {
    Begin(0);
    call_counts.Reset(n);
    CUdeviceptr large = Allocate(2 * kGap);
    const std::string failed = call_counts.failed;
    last = call_counts.all;
    call_counts.Reset(0);
    ASSERT_TRUE(memory_->Validate()) << n << " " << failed;
    ASSERT_FALSE(memory_->broken()) << n << " " << failed;
    if (large == 0) large = Allocate(2 * kGap);
    ASSERT_NE(large, 0u) << n << " " << failed;
    Set(1, large, 2 * kGap, 2);
    ExpectAll(large, 2 * kGap, 2, 1);
    ASSERT_TRUE(Holds(kept_, 2 * kMiB, 1)) << n << " " << failed;
    if (failed.empty()) break;
  }
  EXPECT_GT(last, 5);
  EXPECT_LT(last, 100) << "every call had its turn";
}

}  // namespace
}  // namespace tidemark::interpose
