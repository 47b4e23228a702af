// Rules of device memory that only a simulator can show: poison, illegal accesses with their
// history, the guard, injected faults, pools that give back, look-ups by version, stubs.

#include <cuda.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/simgpu/device.h"
#include "tests/simgpu/node_folder.h"

namespace simgpu_tests {
namespace {

class MemoryRules : public NodeFolderTest {};

TEST_F(MemoryRules, PlainMemoryReadsAsNotANumberUntilItIsWritten) {
  InChild(Config(), [] {
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAlloc(&data, 4096));
    std::vector<float> values(1024);
    EXPECT_CUDA(cuMemcpyDtoH(values.data(), data, 4096));
    for (float value : values) {
      if (value == value) EXPECT_IN_CHILD(!"a value that is a number");
    }
  });
}

TEST_F(MemoryRules, AnAccessAfterTheFreeIsNamedWithItsHistory) {
  const std::string said = InChild(Config(), [] {
    CUdeviceptr data = 0;
    uint32_t word = 0;
    EXPECT_CUDA(cuMemAlloc(&data, 4096));
    EXPECT_CUDA(cuMemFree(data));
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(&word, data, 4));
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&data, 4096));  // the context is broken
  });
  EXPECT_NE(said.find("freed by cuMemFree"), std::string::npos) << said;
  EXPECT_NE(said.find("4096 bytes"), std::string::npos) << said;
}

TEST_F(MemoryRules, ACopyPastTheEndOfAnAllocationIsIllegal) {
  InChild(Config(), [] {
    CUdeviceptr data = 0;
    std::vector<char> bytes(5000);
    EXPECT_CUDA(cuMemAlloc(&data, 4096));
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemcpyDtoH(bytes.data(), data, 5000));
  });
}

// The exit status of a child that lets the host read a device address under `guard`.
int ReadByHost(const std::string& config) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    setenv("SIMGPU", config.c_str(), 1);
    CUcontext context = nullptr;
    CUdeviceptr data = 0;
    const bool ready =
        cuInit(0) == CUDA_SUCCESS && cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS &&
        cuCtxSetCurrent(context) == CUDA_SUCCESS && cuMemAlloc(&data, 4096) == CUDA_SUCCESS &&
        cuMemsetD8(data, 1, 4096) == CUDA_SUCCESS;
    if (!ready) _exit(2);
    _exit(*reinterpret_cast<volatile unsigned char*>(data) == 1 ? 0 : 3);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(MemoryRules, TheGuardMakesHostReadsOfDeviceMemoryFault) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "needs a build without sanitizers, which handle the fault themselves";
#endif
  const int status = ReadByHost(Config("guard=mprotect"));
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) << status;
  EXPECT_EQ(ReadByHost(Config("guard=off")), 0);
}

TEST_F(MemoryRules, TheNthCallFailsAsAskedAndOnlyThat) {
  InChild(Config("fail=cuMemAlloc:2:2,fail=cuMemCreate:1:999"), [] {
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAlloc(&data, 4096));
    EXPECT_CODE(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, 4096));
    EXPECT_CUDA(cuMemAlloc(&data, 4096));
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    EXPECT_CODE(CUDA_ERROR_UNKNOWN, cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    EXPECT_CUDA(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
  });
}

TEST_F(MemoryRules, MemoryRunsOutAfterTheBytesAskedFor) {
  InChild(Config("oom_after=8MiB"), [] {
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAlloc(&data, 6 * kMiB));
    EXPECT_CODE(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, 4 * kMiB));
    EXPECT_CUDA(cuMemAlloc(&data, 2 * kMiB));
    EXPECT_CODE(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, 1));
  });
}

TEST_F(MemoryRules, PoolMemoryGoesBackAtASynchronisationAboveTheThreshold) {
  InChild(Config(), [] {
    CUmemoryPool pool = nullptr;
    EXPECT_CUDA(cuDeviceGetDefaultMemPool(&pool, 0));
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAllocAsync(&data, 8 * kMiB, nullptr));
    EXPECT_CUDA(cuMemFreeAsync(data, nullptr));
    EXPECT_CUDA(cuStreamSynchronize(nullptr));
    EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB);
    cuuint64_t threshold = 32 * kMiB;
    EXPECT_CUDA(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    EXPECT_CUDA(cuMemAllocAsync(&data, 8 * kMiB, nullptr));
    EXPECT_CUDA(cuMemFreeAsync(data, nullptr));
    EXPECT_CUDA(cuStreamSynchronize(nullptr));
    EXPECT_IN_CHILD(FreeBytes() == 56 * kMiB);
    EXPECT_CUDA(cuMemAlloc(&data, 60 * kMiB));  // takes what the pool keeps
  });
}

TEST_F(MemoryRules, PoolMemoryIsFreedOnce) {
  InChild(Config("order=adversarial"), [] {
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAllocAsync(&data, kMiB, nullptr));
    EXPECT_CUDA(cuMemFreeAsync(data, nullptr));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemFreeAsync(data, nullptr));
    EXPECT_CUDA(cuStreamSynchronize(nullptr));
  });
}

TEST_F(MemoryRules, GraphMemoryIsNaNAtEveryLaunchAndBelongsToItsGraphUntilFreed) {
  InChild(Config(), [] {
    CUstream stream = NewStream();
    CUdeviceptr data = 0;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CUDA(cuMemAllocAsync(&data, kMiB, stream));
    EXPECT_CUDA(cuStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cuGraphInstantiate(&exec, graph, 0));
    for (int launch = 0; launch < 2; ++launch) {
      EXPECT_CUDA(cuGraphLaunch(exec, stream));
      EXPECT_CUDA(cuStreamSynchronize(stream));
      EXPECT_IN_CHILD(Read(data, 1)[0] == 0xffffffffu);
      EXPECT_CUDA(cuMemsetD8(data, 1, kMiB));
      if (launch == 0) EXPECT_CUDA(cuMemFreeAsync(data, stream));
    }
    EXPECT_CUDA(cuGraphExecDestroy(exec));
    EXPECT_CUDA(cuGraphDestroy(graph));
    EXPECT_IN_CHILD(Read(data, 1)[0] == 0x01010101u);  // nobody freed it yet
    EXPECT_IN_CHILD(FreeBytes() < 64 * kMiB);
    EXPECT_CUDA(cuMemFreeAsync(data, stream));
    EXPECT_CUDA(cuStreamSynchronize(stream));
    EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB);
  });
}

TEST_F(MemoryRules, UnmappingDoesNotWaitAndQueuedWorkMeetsNothing) {
  const std::string said = InChild(Config("order=adversarial"), [] {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr base = 0;
    const CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CUDA(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    EXPECT_CUDA(cuMemAddressReserve(&base, 2 * kMiB, 0, 0, 0));
    EXPECT_CUDA(cuMemMap(base, 2 * kMiB, 0, handle, 0));
    EXPECT_CUDA(cuMemSetAccess(base, 2 * kMiB, &access, 1));
    EXPECT_CUDA(cuMemsetD8Async(base, 1, kMiB, NewStream()));
    EXPECT_CUDA(cuMemUnmap(base, 2 * kMiB));
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
  EXPECT_FALSE(said.empty());
}

void* LookUp(const char* name, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult wanted = CU_GET_PROC_ADDRESS_SUCCESS) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  (void)cuGetProcAddress(name, &function, version, flags, &status);
  EXPECT_IN_CHILD(status == wanted);
  return function;
}

TEST_F(MemoryRules, LookUpAnswersTheFormOfTheVersionAskedFor) {
  InChild(Config(), [] {
    auto* allocate = reinterpret_cast<void*>(&cuMemAlloc);
    EXPECT_IN_CHILD(LookUp("cuMemAlloc", 3020, 0) == allocate);
    EXPECT_IN_CHILD(LookUp("cuMemAlloc", 13000, 0) == allocate);
    EXPECT_IN_CHILD(LookUp("cuMemAlloc", 2000, 0) != allocate);
    EXPECT_IN_CHILD(LookUp("cuCtxCreate", 13000, 0) == reinterpret_cast<void*>(&cuCtxCreate));
    EXPECT_IN_CHILD(LookUp("cuCtxCreate", 11040, 0) != LookUp("cuCtxCreate", 12050, 0));
  });
}

TEST_F(MemoryRules, LookUpSaysWhetherTheNameOrTheVersionIsWrong) {
  InChild(Config(), [] {
    LookUp("cuNoSuchThing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    LookUp("cuMemCreate", 10000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  });
}

TEST_F(MemoryRules, LookUpPrefersPerThreadFormsWhenAsked) {
  InChild(Config(), [] {
    const auto own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    EXPECT_IN_CHILD(LookUp("cuMemcpyHtoDAsync", 13000, own) !=
                    LookUp("cuMemcpyHtoDAsync", 13000, 0));
    EXPECT_IN_CHILD(LookUp("cuMemAlloc", 13000, own) == reinterpret_cast<void*>(&cuMemAlloc));
  });
}

TEST_F(MemoryRules, WhatIsMissingIsNotSupportedAndNamedOnce) {
  const std::string said = InChild(Config("verbose=1"), [] {
    CUarray array = nullptr;
    CUDA_ARRAY_DESCRIPTOR shape = {16, 16, CU_AD_FORMAT_FLOAT, 1};
    EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED, cuArrayCreate(&array, &shape));
    EXPECT_CODE(CUDA_ERROR_NOT_SUPPORTED, cuArrayCreate(&array, &shape));
  });
  const size_t first = said.find("cuArrayCreate_v2 is not supported");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("cuArrayCreate_v2 is not supported", first + 1), std::string::npos);
}

// cuInit's answer in a child under `config`.
CUresult InitUnder(const std::string& config) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMGPU", config.c_str(), 1);
    fclose(stderr);
    _exit(cuInit(0));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return static_cast<CUresult>(WEXITSTATUS(status));
}

TEST(ConfigErrors, MakeInitialisationFail) {
  EXPECT_EQ(InitUnder("devices=none"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(InitUnder("colour=red"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(InitUnder("devices=0"), CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(InitUnder("guard=hard"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(InitUnder("h2d=25GB"), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(InitUnder("fail=cuMemAlloc"), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace simgpu_tests
