// Memory that goes away or changes under queued work: a program's mistake that must not pass
// unseen, and the correct forms that must not be accused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kChunk = 2 << 20;

struct Mapping {
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle handles[2] = {};

  Mapping() {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    for (CUmemGenericAllocationHandle& handle : handles) {
      EXPECT_CUDA(cuMemCreate(&handle, kChunk, &prop, 0));
    }
    EXPECT_CUDA(cuMemAddressReserve(&address, kChunk, 0, 0, 0));
    Map(0);
  }
  void Map(int which) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_CUDA(cuMemMap(address, kChunk, 0, handles[which], 0));
    EXPECT_CUDA(cuMemSetAccess(address, kChunk, &access, 1));
  }
  void Remap(int which) {
    EXPECT_CUDA(cuMemUnmap(address, kChunk));
    Map(which);
  }
};

TEST(EngineRemap, WorkQueuedBeforeARemapIsAnIllegalAccess) {
  const std::string output = InChild("order=adversarial,seed=1", [] {
    Mapping mapping;
    EXPECT_CUDA(Add(NewStream(), mapping.address, 16, 1));
    mapping.Remap(1);
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
  EXPECT_THAT(output, HasSubstr("was unmapped or freed while this operation was queued"));
}

TEST(EngineRemap, EvenWhenItRanInTimeTheRaceIsReported) {
  const std::string output = InChild("order=eager,race=1", [] {
    Mapping mapping;
    EXPECT_CUDA(Add(NewStream(), mapping.address, 16, 1));
    mapping.Remap(1);
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, HasSubstr("race: the host (free or unmap)"));
}

TEST(EngineRemap, ARemapAfterWaitingIsFine) {
  for (const char* order : {"order=eager,race=1", "order=adversarial,race=1,seed=4"}) {
    const std::string output = InChild(order, [] {
      Mapping mapping;
      const CUstream stream = NewStream();
      const CUevent done = NewEvent();
      for (int round = 0; round < 6; ++round) {
        EXPECT_CUDA(Add(stream, mapping.address, 16, 1));
        EXPECT_CUDA(cuEventRecord(done, stream));
        EXPECT_CUDA(cuEventSynchronize(done));
        mapping.Remap((round + 1) % 2);
      }
      EXPECT_IN_CHILD(Read(mapping.address, 1)[0] == 3);
    });
    EXPECT_THAT(output, Not(HasSubstr("race: ")));
  }
}

TEST(EngineRemap, AQueryThatSaidReadyOrdersTheHost) {
  const std::string output = InChild("order=adversarial,race=1,seed=5", [] {
    Mapping mapping;
    const CUstream stream = NewStream();
    EXPECT_CUDA(Add(stream, mapping.address, 16, 1));
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
    mapping.Remap(1);
    EXPECT_CUDA(cuCtxSynchronize());
  });
  EXPECT_THAT(output, Not(HasSubstr("race: ")));
}

TEST(EngineRemap, HostBackedMemoryIsReachedOverTheLink) {
  InChild("order=eager,h2d=10GB/s,d2h=10GB/s", [] {
    CUmemAllocationProp prop{};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr host = 0;
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_CUDA(cuMemCreate(&handle, kChunk, &prop, 0));
    EXPECT_CUDA(cuMemAddressReserve(&host, kChunk, 0, 0, 0));
    EXPECT_CUDA(cuMemMap(host, kChunk, 0, handle, 0));
    EXPECT_CUDA(cuMemSetAccess(host, kChunk, &access, 1));
    const CUdeviceptr device = Allocate(kChunk);
    const CUstream stream = NewStream();
    const CUevent start = NewEvent();
    const CUevent end = NewEvent();
    float milliseconds = 0;
    EXPECT_CUDA(cuEventRecord(start, stream));
    EXPECT_CUDA(cuMemcpyDtoDAsync(host, device, kChunk, stream));
    EXPECT_CUDA(cuEventRecord(end, stream));
    EXPECT_CUDA(cuEventSynchronize(end));
    EXPECT_CUDA(cuEventElapsedTime(&milliseconds, start, end));
    EXPECT_IN_CHILD(milliseconds > 0.2 && milliseconds < 0.22);  // 2 MiB at 10 GB/s
  });
}

}  // namespace
}  // namespace simgpu_tests
