// Kernels: twins with and without barrier, arguments in both forms, faults, PTX, launch limits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

using ::testing::HasSubstr;

TEST(EngineKernel, BarrierKernelSeesItsBlocksSharedMemory) {
  for (const unsigned threads : {1u, 2u, 33u, 256u, 1024u}) {
    InChild("order=eager", [threads] {
      constexpr unsigned kBlocks = 5;
      CUdeviceptr data = Allocate(kBlocks * threads * 4);
      std::vector<uint32_t> host(kBlocks * threads);
      for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<uint32_t>(i);
      EXPECT_CUDA(cuMemcpyHtoD(data, host.data(), host.size() * 4));
      EXPECT_CUDA(LaunchOn(nullptr, "reverse", {&data}, threads, kBlocks));
      const std::vector<uint32_t> now = Read(data, host.size());
      for (uint32_t block = 0; block < kBlocks; ++block) {
        for (uint32_t i = 0; i < threads; ++i) {
          EXPECT_IN_CHILD(now[block * threads + i] == block * threads + threads - 1 - i);
        }
      }
    });
  }
}

TEST(EngineKernel, ArgumentsInABufferAreTakenToo) {
  InChild("order=eager", [] {
    struct {
      CUdeviceptr data;
      uint32_t count;
      uint32_t value;
    } arguments = {Allocate(64), 16, 5};
    size_t size = sizeof(arguments);
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    EXPECT_CUDA(cuLaunchKernel(Function("add"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    EXPECT_IN_CHILD(Read(arguments.data, 16)[15] == 5);
    size = 4;
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(Function("add"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  });
}

TEST(EngineKernel, ParameterLayoutIsTold) {
  InChild("order=eager", [] {
    size_t offset = 0;
    size_t size = 0;
    EXPECT_CUDA(cuFuncGetParamInfo(Function("add"), 2, &offset, &size));
    EXPECT_IN_CHILD(offset == 12 && size == 4);
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo(Function("add"), 3, &offset, &size));
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    EXPECT_CUDA(cuLibraryLoadData(&library, Image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    EXPECT_CUDA(cuLibraryGetKernel(&kernel, library, "add"));
    EXPECT_CUDA(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    EXPECT_IN_CHILD(offset == 0 && size == 8);
    CUdeviceptr data = Allocate(64);
    uint32_t count = 16;
    uint32_t value = 2;
    void* params[] = {&data, &count, &value};
    // A CUkernel launches where a CUfunction is wanted.
    EXPECT_CUDA(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                               params, nullptr));
    EXPECT_IN_CHILD(Read(data, 1)[0] == 2);
    EXPECT_CODE(CUDA_ERROR_NOT_FOUND, cuLibraryGetKernel(&kernel, library, "nobody"));
  });
}

TEST(EngineKernel, ImpossibleShapesAreRefused) {
  InChild("order=eager", [] {
    CUdeviceptr data = Allocate(64);
    void* params[] = {&data};
    const CUfunction f = Function("slow");
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, nullptr, params, nullptr));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1 << 20, nullptr, params, nullptr));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
    EXPECT_CODE(CUDA_ERROR_INVALID_HANDLE,
                cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  });
}

TEST(EngineKernel, ATouchOfFreedMemoryIsAStickyErrorAndNotACrash) {
  for (const char* order : {"order=eager", "order=adversarial,seed=2"}) {
    const std::string output = InChild(order, [] {
      const CUdeviceptr data = Allocate(1 << 20);
      EXPECT_CUDA(cuMemFree(data));
      cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
      Add(nullptr, data, 16, 1);
      EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
      EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuStreamSynchronize(nullptr));
      EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemsetD8(data, 0, 1));
    });
    EXPECT_THAT(output, HasSubstr("add"));
    EXPECT_THAT(output, HasSubstr("0x"));
  }
}

TEST(EngineKernel, ACopyFromUnmappedMemoryIsASticky) {
  InChild("order=eager", [] {
    const CUdeviceptr data = Allocate(1 << 20);
    EXPECT_CUDA(cuMemFree(data));
    const CUdeviceptr other = Allocate(64);
    cuMemcpyDtoDAsync(other, data, 64, nullptr);
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
}

TEST(EngineKernel, AFaultInABarrierKernelIsCaughtToo) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "needs a build without ThreadSanitizer, under which this fault is not seen";
#endif
  InChild("order=eager", [] {
    CUdeviceptr data = Allocate(1 << 20);
    EXPECT_CUDA(cuMemFree(data));
    LaunchOn(nullptr, "reverse", {&data}, 64);
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
}

TEST(EngineKernel, FaultsOutsideKernelsGoToTheProgramsOwnHandler) {
  InChild("order=eager", [] {
    static volatile int caught = 0;
    static void* page = nullptr;
    const CUdeviceptr data = Allocate(64);
    EXPECT_CUDA(Add(nullptr, data, 1, 1));  // ours is installed by now
    struct sigaction mine {};
    mine.sa_handler = [](int) {
      caught = caught + 1;
      mprotect(page, 4096, PROT_READ | PROT_WRITE);
    };
    sigaction(SIGSEGV, &mine, nullptr);
    EXPECT_CUDA(Add(nullptr, data, 1, 1));  // and is put before the program's
    page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *static_cast<volatile int*>(page) = 1;
    EXPECT_IN_CHILD(caught == 1);
  });
}

TEST(EngineKernel, PtxGivesNamesAndLayoutAndTimeButNoBytes) {
  InChild("order=eager", [] {
    const char* ptx =
        "//\n.version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .entry scale(\n\t.param .u64 .ptr .global .align 4 scale_param_0,\n"
        "\t.param .u32 scale_param_1,\n\t.param .align 8 .b8 scale_param_2[24]\n)\n"
        ".maxntid 128, 1, 1\n{\n\tret;\n}\n";
    CUmodule module = nullptr;
    CUfunction scale = nullptr;
    EXPECT_CUDA(cuModuleLoadData(&module, ptx));
    EXPECT_CUDA(cuModuleGetFunction(&scale, module, "scale"));
    const size_t wanted[][2] = {{0, 8}, {8, 4}, {16, 24}};
    for (size_t i = 0; i < 3; ++i) {
      size_t offset = 0;
      size_t size = 0;
      EXPECT_CUDA(cuFuncGetParamInfo(scale, i, &offset, &size));
      EXPECT_IN_CHILD(offset == wanted[i][0] && size == wanted[i][1]);
    }
    int threads = 0;
    EXPECT_CUDA(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, scale));
    EXPECT_IN_CHILD(threads == 128);
    CUdeviceptr data = Allocate(4096);
    uint32_t count = 1;
    unsigned char blob[24] = {};
    void* params[] = {&data, &count, blob};
    EXPECT_CUDA(cuLaunchKernel(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr));
    EXPECT_CUDA(cuCtxSynchronize());
    // A pointer hidden in a structure is checked as well.
    const CUdeviceptr gone = Allocate(1 << 20);
    EXPECT_CUDA(cuMemFree(gone));
    memcpy(blob + 8, &gone, sizeof(gone));
    cuLaunchKernel(scale, 1, 1, 1, 32, 1, 1, 0, nullptr, params, nullptr);
    EXPECT_CODE(CUDA_ERROR_ILLEGAL_ADDRESS, cuCtxSynchronize());
  });
}

TEST(EngineKernel, WhatIsNoImageIsRefused) {
  InChild("order=eager", [] {
    CUmodule module = nullptr;
    const char noise[32] = "\x01\x02 this is not an image";
    EXPECT_CODE(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, noise));
    EXPECT_CODE(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, "// nothing here"));
    EXPECT_CODE(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/nowhere/at/all"));
  });
}

TEST(EngineKernel, OccupancyFollowsSharedMemory) {
  InChild("order=eager", [] {
    int plain = 0;
    int hungry = 0;
    EXPECT_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&plain, Function("add"), 256, 0));
    EXPECT_CUDA(
        cuOccupancyMaxActiveBlocksPerMultiprocessor(&hungry, Function("add"), 256, 48 * 1024));
    EXPECT_IN_CHILD(plain == 8 && hungry == 4);
    int grid = 0;
    int block = 0;
    EXPECT_CUDA(cuOccupancyMaxPotentialBlockSize(&grid, &block, Function("add"), nullptr, 0, 0));
    EXPECT_IN_CHILD(block == 1024 && grid == 2 * 132);
  });
}

}  // namespace
}  // namespace simgpu_tests
