// One managed device over the software GPU, standalone, with small budgets, and buffers whose bytes
// are known. Work of the job goes to the real driver, as it would after the gate. Threads: one.

#ifndef TIDEMARK_TESTS_INTERPOSE_DEVICE_MEMORY_FIXTURE_H_
#define TIDEMARK_TESTS_INTERPOSE_DEVICE_MEMORY_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "interpose/device_memory.h"
#include "tests/interpose/counted_driver.h"

namespace tidemark::interpose {

inline constexpr core::Bytes kMiB = core::kMiB;

class DeviceMemoryFixture : public testing::Test {
 protected:
  void SetUp() override {
    driver_ = CountedDriver();
    ASSERT_NE(driver_, nullptr);
    ASSERT_EQ(real_driver.cuInit(0), CUDA_SUCCESS);
    ASSERT_EQ(real_driver.cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(real_driver.cuCtxSetCurrent(context_), CUDA_SUCCESS);
    Start(8 * kMiB, 64 * kMiB);
  }

  void TearDown() override {
    call_counts.Reset(0);
    if (memory_ != nullptr) memory_->ReleaseForTesting();
    real_driver.cuDevicePrimaryCtxRelease(0);
  }

  void Start(core::Bytes device_budget, core::Bytes host_budget) {
    call_counts.Reset(0);
    if (memory_ != nullptr) memory_->ReleaseForTesting();
    session_ = std::make_unique<Session>();
    memory_ = std::make_unique<DeviceMemory>();
    ASSERT_TRUE(memory_->Init(driver_, 0, session_.get()));
    memory_->SetBudgets(device_budget, host_budget);
  }

  CUdeviceptr Allocate(core::Bytes bytes) {
    CUdeviceptr address = 0;
    MutexLock lock(&memory_->mutex);
    return memory_->Allocate(bytes, context_, &address) == CUDA_SUCCESS ? address : 0;
  }

  // Fills with bytes that differ from buffer to buffer and from chunk to chunk.
  static std::vector<char> Pattern(core::Bytes bytes, int seed) {
    std::vector<char> pattern(bytes);
    uint64_t x = static_cast<uint64_t>(seed) * 2654435761u + 1;
    for (size_t i = 0; i + sizeof(x) <= bytes; i += sizeof(x)) {
      x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
      memcpy(&pattern[i], &x, sizeof(x));
    }
    return pattern;
  }
  void Fill(CUdeviceptr address, core::Bytes bytes, int seed) {
    const std::vector<char> pattern = Pattern(bytes, seed);
    ASSERT_EQ(real_driver.cuMemcpyHtoDAsync(address, pattern.data(), bytes, CU_STREAM_LEGACY),
              CUDA_SUCCESS);
    ASSERT_EQ(real_driver.cuStreamSynchronize(CU_STREAM_LEGACY), CUDA_SUCCESS);
  }
  bool Holds(CUdeviceptr address, core::Bytes bytes, int seed) {
    std::vector<char> got(bytes);
    if (real_driver.cuMemcpyDtoHAsync(got.data(), address, bytes, CU_STREAM_LEGACY) !=
            CUDA_SUCCESS ||
        real_driver.cuStreamSynchronize(CU_STREAM_LEGACY) != CUDA_SUCCESS) {
      return false;
    }
    return got == Pattern(bytes, seed);
  }
  void Use(CUdeviceptr address) {
    core::Block* block = memory_->Find(address);
    const core::LaunchNumber launch = memory_->NextLaunch();
    memory_->Touch(block, launch);
    memory_->EndLaunch();
    if (memory_->OnHost(block)) memory_->MakeResident(&block, 1, launch);
  }
  tm_wire_counters_device Counters() {
    tm_wire_counters_device counters;
    memory_->FillCounters(&counters);
    return counters;
  }

  const kernels::Driver* driver_ = nullptr;
  CUcontext context_ = nullptr;
  std::unique_ptr<Session> session_;
  std::unique_ptr<DeviceMemory> memory_;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_TESTS_INTERPOSE_DEVICE_MEMORY_FIXTURE_H_
