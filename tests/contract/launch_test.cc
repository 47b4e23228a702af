// Modules, libraries, kernels and every form of launch.

#include <cstring>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class LaunchContract : public ContractTest {
 public:
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

class Module {
 public:
  Module() { EXPECT_CU(CUDA_SUCCESS, CU(cuModuleLoadData)(&module_, Image())); }
  ~Module() { EXPECT_CU(CUDA_SUCCESS, CU(cuModuleUnload)(module_)); }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  CUfunction Function(const char* name) const {
    CUfunction function = nullptr;
    EXPECT_CU(CUDA_SUCCESS, CU(cuModuleGetFunction)(&function, module_, name));
    return function;
  }
  CUmodule get() const { return module_; }

 private:
  CUmodule module_ = nullptr;
};

constexpr int kCount = 1000;
constexpr unsigned kBlocks = (kCount + kBlock - 1) / kBlock;

const void* Stub(void (*kernel)()) { return reinterpret_cast<const void*>(kernel); }

TEST_F(LaunchContract, TheRuntimeFormPassesParameters) {
  DeviceWords device(Same(kCount, 2));
  RT_OK(Affine(device.get(), 10, 3, kCount));
  EXPECT_EQ(device.Read(), Same(kCount, 23));
}

TEST_F(LaunchContract, ParametersAreTakenWhenTheLaunchReturns) {
  Stream stream;
  DeviceWords device(kCount);
  unsigned* out = device.get();
  unsigned value = 5;
  int count = kCount;
  void* args[] = {&out, &value, &count};
  RT_OK(cudaLaunchKernel(reinterpret_cast<const void*>(&ContractFill), kBlocks, kBlock, args, 0,
                         stream));
  value = 6;
  out = nullptr;
  count = 0;
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 5));
}

TEST_F(LaunchContract, TheDriverFormTakesAListOfParameters) {
  Module module;
  DeviceWords device(kCount);
  unsigned* out = device.get();
  unsigned value = 31;
  int count = kCount;
  void* params[] = {&out, &value, &count};
  CU_OK(CU(cuLaunchKernel)(module.Function("ContractFill"), kBlocks, 1, 1, kBlock, 1, 1, 0, nullptr,
                           params, nullptr));
  EXPECT_EQ(device.Read(), Same(kCount, 31));
}

TEST_F(LaunchContract, TheDriverFormTakesABufferOfParameters) {
  Module module;
  DeviceWords device(kCount);
  struct {
    unsigned* out;
    unsigned value;
    int count;
  } block = {device.get(), 32, kCount};
  size_t bytes = sizeof(block);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CU_OK(CU(cuLaunchKernel)(module.Function("ContractFill"), kBlocks, 1, 1, kBlock, 1, 1, 0, nullptr,
                           nullptr, extra));
  EXPECT_EQ(device.Read(), Same(kCount, 32));
}

TEST_F(LaunchContract, OnlyOneFormOfParametersIsAllowed) {
  Module module;
  size_t bytes = 0;
  void* params[] = {nullptr};
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuLaunchKernel)(module.Function("ContractFill"), 1, 1, 1,
                                                         1, 1, 1, 0, nullptr, params, extra));
}

TEST_F(LaunchContract, TheConfiguredFormsDoTheSame) {
  DeviceWords device(Same(kCount, 0));
  Stream stream;
  unsigned* out = device.get();
  unsigned value = 71;
  int count = kCount;
  void* args[] = {&out, &value, &count};
  cudaLaunchConfig_t config = {};
  config.gridDim = kBlocks;
  config.blockDim = kBlock;
  config.stream = stream;
  RT_OK(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(&ContractFill), args));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 71));
}

TEST_F(LaunchContract, ParameterLayoutHasTheHolesOfC) {
  Module module;
  const size_t offsets[] = {0, 8, 16, 24, 32, 40};
  const size_t sizes[] = {1, 8, 2, 8, 4, 8};
  const CUfunction function = module.Function("ContractMixed");
  for (size_t i = 0; i < 6; ++i) {
    size_t offset = 99;
    size_t size = 99;
    CU_OK(CU(cuFuncGetParamInfo)(function, i, &offset, &size));
    EXPECT_EQ(offset, offsets[i]) << "parameter " << i;
    EXPECT_EQ(size, sizes[i]) << "parameter " << i;
  }
  size_t offset = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuFuncGetParamInfo)(function, 6, &offset, nullptr));
}

TEST_F(LaunchContract, ParametersOfMixedSizesArrive) {
  double* in = nullptr;
  float* out = nullptr;
  std::vector<double> sent(kCount);
  std::vector<float> back(kCount);
  for (int i = 0; i < kCount; ++i) sent[i] = i;
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&in), kCount * sizeof(double)));
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&out), kCount * sizeof(float)));
  RT_OK(cudaMemcpy(in, sent.data(), kCount * sizeof(double), cudaMemcpyHostToDevice));
  RT_OK(tidemark::kernels::Launch(ContractMixed, ShapeFor(kCount), static_cast<char>(-1), in,
                                  static_cast<short>(1000), out, kCount, 0.5));
  RT_OK(cudaMemcpy(back.data(), out, kCount * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(back[i], static_cast<float>(-0.5 * i + 1000));
  RT_OK(cudaFree(in));
  RT_OK(cudaFree(out));
}

TEST_F(LaunchContract, LibrariesHoldKernelsWithoutContext) {
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  unsigned count = 0;
  CU_OK(CU(cuLibraryLoadData)(&library, Image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CU_OK(CU(cuLibraryGetKernelCount)(&count, library));
  EXPECT_EQ(count, 9u);
  CU_OK(CU(cuLibraryGetKernel)(&kernel, library, "ContractFill"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuLibraryGetKernel)(&kernel, library, "ContractMissing"));
  CU_OK(CU(cuLibraryGetKernel)(&kernel, library, "ContractFill"));
  size_t offset = 0;
  size_t size = 0;
  CU_OK(CU(cuKernelGetParamInfo)(kernel, 1, &offset, &size));
  EXPECT_EQ(offset, size_t{8});
  EXPECT_EQ(size, size_t{4});
  CUfunction function = nullptr;
  CU_OK(CU(cuKernelGetFunction)(&function, kernel));
  DeviceWords device(Same(2 * kCount, 0));
  unsigned* out = device.get();
  unsigned value = 8;
  int words = kCount;
  void* params[] = {&out, &value, &words};
  // Both the kernel itself and the function made of it can be launched.
  CU_OK(CU(cuLaunchKernel)(reinterpret_cast<CUfunction>(kernel), kBlocks, 1, 1, kBlock, 1, 1, 0,
                           nullptr, params, nullptr));
  out += kCount;
  CU_OK(CU(cuLaunchKernel)(function, kBlocks, 1, 1, kBlock, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(device.Read(), Same(2 * kCount, 8));
  CU_OK(CU(cuLibraryUnload)(library));
}

TEST_F(LaunchContract, UnknownNamesAreNotFound) {
  Module module;
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetFunction)(&function, module.get(), "Missing"));
  EXPECT_CU(CUDA_ERROR_NOT_FOUND, CU(cuModuleGetGlobal)(&address, &bytes, module.get(), "Gone"));
}

TEST_F(LaunchContract, WhatIsNoImageIsNotLoaded) {
  alignas(16) const char nothing[256] = {};
  CUmodule module = nullptr;
  EXPECT_NE(int{CU(cuModuleLoadData)(&module, nothing)}, int{CUDA_SUCCESS});
}

TEST_F(LaunchContract, ShapesNoDeviceCanRunAreRefused) {
  void* args[] = {nullptr};
  const void* kernel = Stub(ContractNothing);
  EXPECT_RT(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(kernel, dim3(1, 0, 1), 1, args, 0, nullptr));
  EXPECT_RT(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(kernel, 1, dim3(1025), args, 0, nullptr));
  EXPECT_RT(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(kernel, 1, dim3(64, 32), args, 0, nullptr));
  EXPECT_RT(cudaErrorInvalidConfiguration,
            cudaLaunchKernel(kernel, dim3(1, 65536), 1, args, 0, nullptr));
  RT_OK(cudaLaunchKernel(kernel, 1, dim3(16, 8, 8), args, 0, nullptr));
}

TEST_F(LaunchContract, TheDriverRefusesTheSameShapes) {
  Module module;
  const CUfunction function = module.Function("ContractNothing");
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            CU(cuLaunchKernel)(function, 0, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            CU(cuLaunchKernel)(function, 1, 1, 1, 1025, 1, 1, 0, nullptr, nullptr, nullptr));
  CU_OK(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
}

TEST_F(LaunchContract, MoreSharedMemoryThanABlockMayHaveIsRefused) {
  void* args[] = {nullptr};
  EXPECT_RT(cudaErrorInvalidValue,
            cudaLaunchKernel(Stub(ContractNothing), 1, 1, args, 64 << 20, nullptr));
}

TEST_F(LaunchContract, OnlyKernelsCanBeLaunched) {
  void* args[] = {nullptr};
  int not_a_kernel = 0;
  EXPECT_RT(cudaErrorInvalidDeviceFunction,
            cudaLaunchKernel(&not_a_kernel, 1, 1, args, 0, nullptr));
  cudaFuncAttributes attributes;
  EXPECT_RT(cudaErrorInvalidDeviceFunction, cudaFuncGetAttributes(&attributes, &not_a_kernel));
}

TEST_F(LaunchContract, EveryThreadHasItsIndex) {
  const dim3 grid(3, 2, 4);
  const dim3 block(5, 4, 3);
  constexpr unsigned kThreads = 3 * 2 * 4 * 5 * 4 * 3;
  DeviceWords device(Same(kThreads, 0));
  RT_OK(tidemark::kernels::Launch(ContractIndex, {grid, block, nullptr, 0}, device.get()));
  EXPECT_EQ(device.Read(), Counting(kThreads, 1));
}

TEST_F(LaunchContract, BlocksShareMemoryAndMeetAtBarriers) {
  constexpr unsigned kThreads = 96;
  DeviceWords device(Counting(kThreads * 7));
  RT_OK(tidemark::kernels::Launch(ContractReverse,
                                  {dim3(7), dim3(kThreads), nullptr, kThreads * sizeof(unsigned)},
                                  device.get()));
  const std::vector<unsigned> back = device.Read();
  for (unsigned i = 0; i < kThreads * 7; ++i) {
    ASSERT_EQ(back[i], i / kThreads * kThreads + kThreads - 1 - i % kThreads);
  }
}

TEST_F(LaunchContract, AtomicsCountEveryThread) {
  DeviceWords counter(Same(1, 0));
  RT_OK(tidemark::kernels::Launch(ContractCount, {dim3(100), dim3(64), nullptr, 0}, counter.get()));
  EXPECT_EQ(counter.Read()[0], 6400u);
}

TEST_F(LaunchContract, KernelsTellTheirAttributes) {
  cudaFuncAttributes attributes = {};
  RT_OK(cudaFuncGetAttributes(&attributes, Stub(ContractNothing)));
  EXPECT_GE(attributes.maxThreadsPerBlock, 64);
  EXPECT_LE(attributes.maxThreadsPerBlock, 1024);
  Module module;
  int threads = 0;
  CU_OK(CU(cuFuncGetAttribute)(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                               module.Function("ContractNothing")));
  EXPECT_EQ(threads, attributes.maxThreadsPerBlock);
}

TEST_F(LaunchContract, KernelsTellTheirNames) {
  const char* name = nullptr;
  RT_OK(cudaFuncGetName(&name, Stub(ContractNothing)));
  EXPECT_STREQ(name, "ContractNothing");
  Module module;
  CU_OK(CU(cuFuncGetName)(&name, module.Function("ContractFill")));
  EXPECT_STREQ(name, "ContractFill");
}

TEST_F(LaunchContract, TheRuntimeHandsOutDriverHandles) {
  cudaFunction_t function = nullptr;
  cudaKernel_t kernel = nullptr;
  RT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&ContractFill)));
  RT_OK(cudaGetKernel(&kernel, reinterpret_cast<const void*>(&ContractFill)));
  const char* name = nullptr;
  CU_OK(CU(cuKernelGetName)(&name, kernel));
  EXPECT_STREQ(name, "ContractFill");
  DeviceWords device(kCount);
  unsigned* out = device.get();
  unsigned value = 90;
  int count = kCount;
  void* params[] = {&out, &value, &count};
  CU_OK(CU(cuLaunchKernel)(function, kBlocks, 1, 1, kBlock, 1, 1, 0, nullptr, params, nullptr));
  EXPECT_EQ(device.Read(), Same(kCount, 90));
}

TEST_F(LaunchContract, OccupancyIsAtLeastOneBlockThatFits) {
  int blocks = 0;
  RT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, Stub(ContractNothing), 128, 0));
  EXPECT_GE(blocks, 1);
  Module module;
  CU_OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, module.Function("ContractNothing"),
                                                        128, 0));
  EXPECT_GE(blocks, 1);
  int grid = 0;
  int block = 0;
  CU_OK(CU(cuOccupancyMaxPotentialBlockSize)(&grid, &block, module.Function("ContractNothing"),
                                             nullptr, 0, 0));
  EXPECT_GE(grid, 1);
  EXPECT_GE(block, 32);
}

TEST_F(LaunchContract, RuntimeLibrariesLoadTheSameImages) {
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  RT_OK(cudaLibraryLoadData(&library, Image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  RT_OK(cudaLibraryGetKernel(&kernel, library, "ContractFill"));
  DeviceWords device(kCount);
  unsigned* out = device.get();
  unsigned value = 3;
  int count = kCount;
  void* args[] = {&out, &value, &count};
  RT_OK(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), kBlocks, kBlock, args, 0, nullptr));
  EXPECT_EQ(device.Read(), Same(kCount, 3));
  RT_OK(cudaLibraryUnload(library));
}

}  // namespace
}  // namespace contract
