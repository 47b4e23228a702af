// Virtual time: durations follow the configured rates, units overlap, and the report tells it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

bool Near(float milliseconds, double wanted) {
  return std::fabs(milliseconds - wanted) <= 0.02 * wanted + 1e-3;
}

// Virtual milliseconds from before `submit` to the end of everything it did on `stream`.
float Timed(CUstream stream, const std::function<void()>& submit) {
  const CUevent start = NewEvent();
  const CUevent end = NewEvent();
  EXPECT_CUDA(cuEventRecord(start, stream));
  submit();
  EXPECT_CUDA(cuEventRecord(end, stream));
  EXPECT_CUDA(cuEventSynchronize(end));
  float milliseconds = -1;
  EXPECT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
  return milliseconds;
}

TEST(EngineTime, ACopyTakesItsBytesOverTheRate) {
  for (const char* order : {"order=eager", "order=adversarial,seed=4"}) {
    InChild(std::string(order) + ",h2d=10GB/s,d2h=5GB/s", [] {
      const CUstream stream = NewStream();
      const CUdeviceptr data = Allocate(10 * kMiB);
      uint32_t* host = AllocatePinned(10 * kMiB);
      const double up = 10.0 * kMiB / 10e9 * 1e3;
      EXPECT_IN_CHILD(Near(
          Timed(stream, [&] { EXPECT_CUDA(cuMemcpyHtoDAsync(data, host, 10 * kMiB, stream)); }),
          up + 0.004));
      EXPECT_IN_CHILD(Near(
          Timed(stream, [&] { EXPECT_CUDA(cuMemcpyDtoHAsync(host, data, 10 * kMiB, stream)); }),
          2 * up + 0.004));
    });
  }
}

TEST(EngineTime, CopiesAndKernelsOverlapOnDifferentStreams) {
  InChild("h2d=10GB/s", [] {
    const CUstream copies = NewStream();
    const CUstream kernels = NewStream();
    CUdeviceptr data = Allocate(10 * kMiB);
    uint32_t* host = AllocatePinned(10 * kMiB);
    const CUevent copied = NewEvent();
    const float together = Timed(kernels, [&] {
      EXPECT_CUDA(cuMemcpyHtoDAsync(data, host, 10 * kMiB, copies));
      EXPECT_CUDA(cuEventRecord(copied, copies));
      EXPECT_CUDA(LaunchOn(kernels, "slow", {&data}));
      EXPECT_CUDA(cuStreamWaitEvent(kernels, copied, 0));
    });
    EXPECT_IN_CHILD(
        Near(together, 10.0 * kMiB / 10e9 * 1e3 + 0.004));  // the kernel's 1 ms is hidden
  });
}

TEST(EngineTime, TheDuplexFactorSlowsBothDirections) {
  InChild("h2d=10GB/s,d2h=10GB/s,duplex=0.5", [] {
    const CUstream up = NewStream();
    const CUstream down = NewStream();
    const CUdeviceptr a = Allocate(10 * kMiB);
    const CUdeviceptr b = Allocate(10 * kMiB);
    uint32_t* host = AllocatePinned(20 * kMiB);
    const CUevent done = NewEvent();
    const float both = Timed(up, [&] {
      EXPECT_CUDA(cuMemcpyDtoHAsync(host, a, 10 * kMiB, down));
      EXPECT_CUDA(cuMemcpyHtoDAsync(b, host + 10 * kMiB / 4, 10 * kMiB, up));
      EXPECT_CUDA(cuEventRecord(done, down));
      EXPECT_CUDA(cuStreamWaitEvent(up, done, 0));
    });
    EXPECT_IN_CHILD(Near(both, 2 * 10.0 * kMiB / 10e9 * 1e3 + 0.008));
  });
}

TEST(EngineTime, TimingMistakesAreRefused) {
  InChild("order=eager", [] {
    const CUevent start = NewEvent();
    const CUevent end = NewEvent();
    CUevent untimed = nullptr;
    float milliseconds = 0;
    EXPECT_CUDA(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
    const CUstream stream = NewStream();
    CUdeviceptr data = Allocate(64);
    EXPECT_CUDA(cuEventRecord(start, stream));
    EXPECT_CUDA(LaunchOn(stream, "slow", {&data}));
    EXPECT_CUDA(cuEventRecord(end, stream));
    EXPECT_CODE(CUDA_ERROR_NOT_READY, cuEventElapsedTime(&milliseconds, start, end));
    EXPECT_CUDA(cuEventRecord(untimed, stream));
    EXPECT_CUDA(cuStreamSynchronize(stream));
    EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, untimed));
    EXPECT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
    EXPECT_IN_CHILD(Near(milliseconds, 1.004));
  });
}

TEST(EngineTime, AskingAboutManyEventsIsNotWaitingForThem) {
  InChild("order=eager", [] {
    const CUstream stream = NewStream();
    const CUevent start = NewEvent();
    const CUevent end = NewEvent();
    CUdeviceptr data = Allocate(64);
    std::vector<CUevent> events;
    EXPECT_CUDA(cuEventRecord(start, stream));
    for (int i = 0; i < 60; ++i) {
      EXPECT_CUDA(LaunchOn(stream, "slow", {&data}));
      events.push_back(NewEvent());
      EXPECT_CUDA(cuEventRecord(events.back(), stream));
    }
    for (const CUevent event : events) cuEventQuery(event);
    EXPECT_CUDA(LaunchOn(stream, "slow", {&data}));
    EXPECT_CUDA(cuEventRecord(end, stream));
    EXPECT_CUDA(cuEventSynchronize(end));
    float milliseconds = 0;
    EXPECT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
    EXPECT_IN_CHILD(Near(milliseconds, 61.004));
  });
}

TEST(EngineTime, VirtualTimeIsTheSameInEveryRun) {
  const auto run = [](const std::string& config) {
    return InChild(config + ",report=1", [] {
      CUdeviceptr data = Allocate(kMiB);
      uint32_t* host = AllocatePinned(kMiB);
      const CUstream a = NewStream();
      const CUstream b = NewStream();
      for (int i = 0; i < 20; ++i) {
        EXPECT_CUDA(cuMemcpyHtoDAsync(data, host, kMiB, a));
        EXPECT_CUDA(LaunchOn(b, "slow", {&data}));
        if (i % 3 == 0) EXPECT_CUDA(cuStreamSynchronize(b));
      }
      EXPECT_CUDA(cuCtxSynchronize());
    });
  };
  const std::string eager = run("order=eager");
  EXPECT_EQ(eager, run("order=eager"));
  EXPECT_EQ(eager, run("order=adversarial,seed=8"));  // the order of execution is not time
  EXPECT_THAT(eager, HasSubstr("\nbytes_h2d: 20971520\n"));
  EXPECT_THAT(eager, HasSubstr("\noperations_kernel: 20\n"));
  EXPECT_THAT(eager, HasSubstr("\nbusy_seconds_compute: 0.020000000\n"));
  EXPECT_THAT(eager, HasSubstr("\nillegal_addresses: 0\n"));
}

TEST(EngineTime, TheReportGoesToAFile) {
  char path[] = "/tmp/simgpu_report_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  InChild(std::string("report=") + path, [] { EXPECT_CUDA(Add(nullptr, Allocate(64), 16, 1)); });
  char text[4096] = {};
  ASSERT_GT(read(file, text, sizeof(text) - 1), 0);
  EXPECT_THAT(text, HasSubstr("simgpu_report: 1\nvirtual_seconds: "));
  close(file);
  unlink(path);
}

}  // namespace
}  // namespace simgpu_tests
