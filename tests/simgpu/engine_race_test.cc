// The race detector: reports two conflicting accesses that nothing orders, names both, and keeps
// quiet about everything that streams, events or the host order.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kCount = 256;
constexpr size_t kBytes = kCount * 4;

// Runs `body` in both orders; answers the output of both.
std::string Watch(const std::function<void()>& body) {
  return InChild("race=1,order=eager", body) + InChild("race=1,order=adversarial,seed=11", body);
}

TEST(EngineRace, TwoStreamsThatWriteTheSameBytesAreReportedByName) {
  const std::string output = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    EXPECT_CUDA(Add(NewStream(), data, kCount, 1));
    EXPECT_CUDA(cuMemsetD8Async(data, 1, 16, NewStream()));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, HasSubstr("race: "));
  EXPECT_THAT(output, HasSubstr("add (stream"));
  EXPECT_THAT(output, HasSubstr("cuMemsetD8 (stream"));
}

TEST(EngineRace, NeighbouringBytesDoNotConflict) {
  const std::string output = Watch([] {
    const CUdeviceptr data = Allocate(2 * kBytes);
    EXPECT_CUDA(Add(NewStream(), data, kCount, 1));
    EXPECT_CUDA(Add(NewStream(), data + kBytes, kCount, 1));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRace, TwoReadersDoNotConflict) {
  const std::string output = Watch([] {
    CUdeviceptr data = Allocate(kBytes);
    for (int i = 0; i < 2; ++i) {
      CUdeviceptr to = Allocate(kBytes);
      uint32_t count = kCount;
      EXPECT_CUDA(LaunchOn(NewStream(), "copy", {&to, &data, &count}));
    }
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRace, AnEventOrders) {
  const std::string output = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    const CUstream first = NewStream();
    const CUstream second = NewStream();
    const CUevent event = NewEvent();
    EXPECT_CUDA(Add(first, data, kCount, 1));
    EXPECT_CUDA(cuEventRecord(event, first));
    EXPECT_CUDA(cuStreamWaitEvent(second, event, 0));
    EXPECT_CUDA(Add(second, data, kCount, 1));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRace, AnEventRecordedTooEarlyDoesNotOrder) {
  const std::string output = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    const CUstream first = NewStream();
    const CUstream second = NewStream();
    const CUevent event = NewEvent();
    EXPECT_CUDA(cuEventRecord(event, first));
    EXPECT_CUDA(Add(first, data, kCount, 1));
    EXPECT_CUDA(cuStreamWaitEvent(second, event, 0));
    EXPECT_CUDA(Add(second, data, kCount, 1));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, HasSubstr("race: "));
}

TEST(EngineRace, AHostWaitOrders) {
  const std::string output = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    const CUstream first = NewStream();
    EXPECT_CUDA(Add(first, data, kCount, 1));
    EXPECT_CUDA(cuStreamSynchronize(first));
    EXPECT_CUDA(Add(NewStream(), data, kCount, 1));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRace, TheLegacyStreamOrdersBlockingStreamsButNotOthers) {
  const std::string ordered = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    CUstream blocking = nullptr;
    EXPECT_CUDA(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    EXPECT_CUDA(Add(blocking, data, kCount, 1));
    EXPECT_CUDA(cuMemsetD8Async(data, 0, kBytes, CU_STREAM_LEGACY));
    EXPECT_CUDA(Add(blocking, data, kCount, 1));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(ordered, Not(HasSubstr("race: ")));
  const std::string unordered = Watch([] {
    const CUdeviceptr data = Allocate(kBytes);
    EXPECT_CUDA(Add(NewStream(), data, kCount, 1));
    EXPECT_CUDA(cuMemsetD8Async(data, 0, kBytes, CU_STREAM_LEGACY));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(unordered, HasSubstr("race: "));
}

TEST(EngineRace, MemoryThatWasFreedAndAllocatedAgainHasNoPast) {
  const std::string output = Watch([] {
    for (int i = 0; i < 4; ++i) {
      CUdeviceptr data = 0;
      EXPECT_CUDA(cuMemAlloc(&data, kBytes));
      EXPECT_CUDA(Add(NewStream(), data, kCount, 1));
      EXPECT_CUDA(cuMemFree(data));
    }
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRace, AnUntracedTwinIsNamedOnce) {
  const std::string output = InChild("race=1", [] {
    CUdeviceptr data = Allocate(kBytes);
    uint32_t count = kCount;
    for (int i = 0; i < 3; ++i) EXPECT_CUDA(LaunchOn(nullptr, "untraced", {&data, &count}));
    EXPECT_CUDA(cuCtxSynchronize());
  });
  const size_t first = output.find("cannot see what kernel untraced touches");
  ASSERT_NE(first, std::string::npos) << output;
  EXPECT_EQ(output.find("cannot see", first + 1), std::string::npos) << output;
}

TEST(EngineRace, TheReportCountsPairsOnce) {
  const std::string output = InChild("race=1,report=1", [] {
    const CUdeviceptr data = Allocate(kBytes);
    const CUstream first = NewStream();
    const CUstream second = NewStream();
    for (int i = 0; i < 5; ++i) {
      EXPECT_CUDA(Add(first, data, kCount, 1));
      EXPECT_CUDA(cuMemsetD8Async(data, 0, kBytes, second));
    }
    EXPECT_CUDA(cuCtxSynchronize());
  });
  // Each of the two against the other's earlier access.
  EXPECT_THAT(output, HasSubstr("\nraces: 2\n"));
}

TEST(EngineRace, BranchesOfAGraphAreUnordered) {
  const auto capture = [](bool join_first) {
    return Watch([join_first] {
      const CUdeviceptr data = Allocate(kBytes);
      const CUstream origin = NewStream();
      const CUstream branch = NewStream();
      const CUevent fork = NewEvent();
      const CUevent join = NewEvent();
      CUgraph graph = nullptr;
      CUgraphExec exec = nullptr;
      EXPECT_CUDA(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
      EXPECT_CUDA(cuEventRecord(fork, origin));
      EXPECT_CUDA(cuStreamWaitEvent(branch, fork, 0));
      EXPECT_CUDA(Add(branch, data, kCount, 1));
      EXPECT_CUDA(cuEventRecord(join, branch));
      if (join_first) EXPECT_CUDA(cuStreamWaitEvent(origin, join, 0));
      EXPECT_CUDA(Add(origin, data, kCount, 1));
      EXPECT_CUDA(cuStreamWaitEvent(origin, join, 0));
      EXPECT_CUDA(cuStreamEndCapture(origin, &graph));
      EXPECT_CUDA(cuGraphInstantiate(&exec, graph, 0));
      EXPECT_CUDA(cuGraphLaunch(exec, origin));
      EXPECT_CUDA(cuGraphLaunch(exec, origin));
      EXPECT_CUDA(cuCtxSynchronize());
    });
  };
  EXPECT_THAT(capture(false), HasSubstr("race: "));
  EXPECT_THAT(capture(true), Not(HasSubstr("race: ")));
}

}  // namespace
}  // namespace simgpu_tests
