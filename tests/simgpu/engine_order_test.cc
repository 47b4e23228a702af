// Order of execution: whatever order the seed chooses, streams, events, the legacy stream and host
// synchronisation are respected; and the adversarial order does defer.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

constexpr int kSeeds = 60;

std::string Adversarial(int seed) { return "order=adversarial,seed=" + std::to_string(seed); }

TEST(EngineOrder, OneStreamRunsInOrderUnderEverySeed) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    InChild(Adversarial(seed), [] {
      CUdeviceptr cell = Allocate(4);
      const CUstream stream = NewStream();
      for (uint32_t digit = 1; digit <= 5; ++digit) {
        EXPECT_CUDA(LaunchOn(stream, "append", {&cell, &digit}));
      }
      EXPECT_CUDA(cuStreamSynchronize(stream));
      EXPECT_IN_CHILD(Read(cell, 1)[0] == 12345);
    });
  }
}

TEST(EngineOrder, EventsOrderTwoStreamsUnderEverySeed) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    InChild(Adversarial(seed), [] {
      const CUdeviceptr a = Allocate(4096);
      const CUdeviceptr b = Allocate(4096);
      const CUstream first = NewStream();
      const CUstream second = NewStream();
      const CUevent ready = NewEvent();
      uint32_t count = 1024;
      EXPECT_CUDA(Add(first, a, count, 7));
      EXPECT_CUDA(cuEventRecord(ready, first));
      EXPECT_CUDA(cuStreamWaitEvent(second, ready, 0));
      CUdeviceptr to = b;
      CUdeviceptr from = a;
      EXPECT_CUDA(LaunchOn(second, "copy", {&to, &from, &count}));
      EXPECT_CUDA(cuStreamSynchronize(second));
      std::vector<uint32_t> host(1024);
      EXPECT_CUDA(cuMemcpyDtoH(host.data(), b, 4096));
      EXPECT_IN_CHILD(host[0] == 7 && host[1023] == 7);
    });
  }
}

TEST(EngineOrder, LegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    InChild(Adversarial(seed), [] {
      const CUdeviceptr a = Allocate(64);
      const CUdeviceptr b = Allocate(64);
      CUstream blocking[2];
      for (CUstream& stream : blocking) EXPECT_CUDA(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
      EXPECT_CUDA(Add(blocking[0], a, 16, 3));
      EXPECT_CUDA(cuMemcpyDtoDAsync(b, a, 64, CU_STREAM_LEGACY));
      EXPECT_CUDA(Add(blocking[1], b, 16, 4));
      EXPECT_CUDA(cuStreamSynchronize(blocking[1]));
      EXPECT_IN_CHILD(Read(b, 1)[0] == 7);
    });
  }
}

TEST(EngineOrder, WorkIsDeferredUntilTheHostWaits) {
  InChild(Adversarial(1), [] {
    uint32_t* pinned = AllocatePinned(64);
    const CUdeviceptr data = Allocate(64);
    const CUstream stream = NewStream();
    pinned[0] = 1;
    EXPECT_CUDA(cuMemcpyHtoDAsync(data, pinned, 64, stream));
    pinned[0] = 2;  // a mistake of the program: the copy reads late
    EXPECT_CUDA(cuStreamSynchronize(stream));
    EXPECT_IN_CHILD(Read(data, 1)[0] == 2);
  });
}

TEST(EngineOrder, PageableSourceIsTakenAtSubmission) {
  for (const char* order : {"order=eager", "order=adversarial,seed=3"}) {
    InChild(order, [] {
      std::vector<uint32_t> host(16, 1);
      const CUdeviceptr data = Allocate(64);
      const CUstream stream = NewStream();
      EXPECT_CUDA(cuMemcpyHtoDAsync(data, host.data(), 64, stream));
      host[0] = 2;
      EXPECT_CUDA(cuStreamSynchronize(stream));
      EXPECT_IN_CHILD(Read(data, 1)[0] == 1);
    });
  }
}

TEST(EngineOrder, UnorderedStreamsRunInDifferentOrdersUnderDifferentSeeds) {
  int last_writer_seen[2] = {0, 0};
  for (int seed = 0; seed < 40; ++seed) {
    const std::string output = InChild(Adversarial(seed), [] {
      const CUdeviceptr data = Allocate(4);
      const CUstream first = NewStream();
      const CUstream second = NewStream();
      EXPECT_CUDA(cuMemsetD32Async(data, 0, 1, first));
      EXPECT_CUDA(cuMemsetD32Async(data, 1, 1, second));
      EXPECT_CUDA(cuCtxSynchronize());
      fprintf(stderr, "last=%u\n", Read(data, 1)[0]);
    });
    ++last_writer_seen[output.find("last=1") != std::string::npos ? 1 : 0];
  }
  EXPECT_GT(last_writer_seen[0], 0);
  EXPECT_GT(last_writer_seen[1], 0);
}

TEST(EngineOrder, TheSameSeedGivesTheSameRun) {
  const auto run = [](int seed) {
    return InChild(Adversarial(seed), [] {
      const CUdeviceptr data = Allocate(64);
      std::vector<CUstream> streams;
      for (int i = 0; i < 4; ++i) streams.push_back(NewStream());
      uint32_t hash = 0;
      for (uint32_t i = 0; i < 200; ++i) {
        EXPECT_CUDA(cuMemsetD32Async(data, i, 1, streams[i * 7 % 4]));
        if (i % 5 == 0) {
          EXPECT_CUDA(cuStreamSynchronize(streams[i % 4]));
          uint32_t now = 0;
          EXPECT_CUDA(cuMemcpyDtoH(&now, data, 4));
          hash = hash * 31 + now;
        }
      }
      fprintf(stderr, "hash=%u\n", hash);
    });
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST(EngineOrder, PollingAQueryEnds) {
  for (int seed = 0; seed < 10; ++seed) {
    for (const std::string& order : {std::string("order=eager"), Adversarial(seed)}) {
      InChild(order, [] {
        CUdeviceptr data = Allocate(64);
        const CUstream stream = NewStream();
        const CUevent done = NewEvent();
        for (int i = 0; i < 20; ++i) EXPECT_CUDA(LaunchOn(stream, "slow", {&data}));
        EXPECT_CUDA(cuEventRecord(done, stream));
        EXPECT_CODE(CUDA_ERROR_NOT_READY, cuEventQuery(done));
        int polls = 0;
        while (cuEventQuery(done) == CUDA_ERROR_NOT_READY && polls < 10000) ++polls;
        EXPECT_CUDA(cuEventQuery(done));
        EXPECT_CUDA(cuStreamQuery(stream));
      });
    }
  }
}

TEST(EngineOrder, HostCallbacksRunInStreamOrderWithoutTheSubmittersLock) {
  for (const char* order : {"order=eager", "order=adversarial,seed=9"}) {
    InChild(order, [] {
      static uint32_t* pinned = AllocatePinned(4);
      static uint32_t seen = 0;
      const CUdeviceptr data = Allocate(4);
      const CUstream stream = NewStream();
      EXPECT_CUDA(cuMemsetD32Async(data, 41, 1, stream));
      EXPECT_CUDA(cuMemcpyDtoHAsync(pinned, data, 4, stream));
      EXPECT_CUDA(cuLaunchHostFunc(
          stream, [](void*) { seen = pinned[0] + 1; }, nullptr));
      EXPECT_CUDA(cuStreamSynchronize(stream));
      EXPECT_IN_CHILD(seen == 42);
    });
  }
}

TEST(EngineOrder, ACallbackRunsEvenWhenTheHostNeverCallsTheDriverAgain) {
  for (const char* order : {"order=eager", "order=adversarial,seed=9"}) {
    InChild(order, [] {
      static std::mutex mutex;
      static std::condition_variable called;
      static bool done = false;
      std::unique_lock<std::mutex> lock(mutex);
      // The callback needs the mutex that the submitting thread holds.
      EXPECT_CUDA(Add(nullptr, Allocate(64), 16, 1));
      EXPECT_CUDA(cuLaunchHostFunc(
          nullptr,
          [](void*) {
            const std::lock_guard<std::mutex> own(mutex);
            done = true;
            called.notify_all();
          },
          nullptr));
      EXPECT_IN_CHILD(called.wait_for(lock, std::chrono::seconds(20), [] { return done; }));
    });
  }
}

TEST(EngineOrder, DestroyedHandlesAreRefused) {
  InChild("order=eager", [] {
    const CUstream stream = NewStream();
    const CUevent event = NewEvent();
    EXPECT_CUDA(cuStreamDestroy(stream));
    EXPECT_CUDA(cuEventDestroy(event));
    EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(event));
  });
}

}  // namespace
}  // namespace simgpu_tests
