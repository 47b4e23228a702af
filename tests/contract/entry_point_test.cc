// cuGetProcAddress in both its versions, and what the runtime offers of it.

#include "tests/contract/contract.h"

namespace contract {
namespace {

class EntryPointContract : public ContractTest {};

using Status = CUdriverProcAddressQueryResult;

TEST_F(EntryPointContract, ANameLeadsToAFunctionThatWorks) {
  void* function = nullptr;
  Status status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CU_OK(CU(cuGetProcAddress)("cuDeviceGetCount", &function, 13000, 0, &status));
  ASSERT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  int count = 0;
  CU_OK(reinterpret_cast<decltype(&cuDeviceGetCount)>(function)(&count));
  EXPECT_EQ(count, DeviceCount());
}

TEST_F(EntryPointContract, AnUnknownNameGivesNoFunction) {
  void* function = &function;
  Status status = CU_GET_PROC_ADDRESS_SUCCESS;
  CU(cuGetProcAddress)("cuNoSuchFunction", &function, 13000, 0, &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_F(EntryPointContract, AVersionBeforeTheFunctionIsNotSufficient) {
  void* function = &function;
  Status status = CU_GET_PROC_ADDRESS_SUCCESS;
  CU(cuGetProcAddress)("cuMemCreate", &function, 9000, 0, &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

TEST_F(EntryPointContract, NullArgumentsAreInvalidValues) {
  void* function = nullptr;
  Status status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGetProcAddress)(nullptr, &function, 13000, 0, &status));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGetProcAddress)("cuInit", nullptr, 13000, 0, &status));
}

TEST_F(EntryPointContract, TheStatusWordIsOptional) {
  void* function = nullptr;
  CU_OK(CU(cuGetProcAddress)("cuInit", &function, 13000, 0, nullptr));
  EXPECT_NE(function, nullptr);
}

TEST_F(EntryPointContract, TheOlderLookupHasNoStatusWord) {
  using Older = CUresult (*)(const char*, void**, int, cuuint64_t);
  auto lookup = DriverFunction<Older>("cuGetProcAddress");
  void* function = nullptr;
  CU_OK(lookup("cuDeviceGetCount", &function, 12000, 0));
  ASSERT_NE(function, nullptr);
  int count = 0;
  CU_OK(reinterpret_cast<decltype(&cuDeviceGetCount)>(function)(&count));
  EXPECT_EQ(count, DeviceCount());
}

TEST_F(EntryPointContract, LookupFindsItselfInTheVersionAskedFor) {
  void* function = nullptr;
  Status status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CU_OK(CU(cuGetProcAddress)("cuGetProcAddress", &function, 12000, 0, &status));
  ASSERT_NE(function, nullptr);
  void* found = nullptr;
  status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  CU_OK(
      reinterpret_cast<decltype(&cuGetProcAddress)>(function)("cuInit", &found, 12000, 0, &status));
  EXPECT_NE(found, nullptr);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

TEST_F(EntryPointContract, TheVersionChoosesTheAbi) {
  using CreateOfCuda3 = CUresult (*)(CUcontext*, unsigned, CUdevice);
  void* older = nullptr;
  void* newer = nullptr;
  CU_OK(CU(cuGetProcAddress)("cuCtxCreate", &older, 3020, 0, nullptr));
  CU_OK(CU(cuGetProcAddress)("cuCtxCreate", &newer, 13000, 0, nullptr));
  ASSERT_NE(older, nullptr);
  EXPECT_NE(older, newer);
  CUcontext context = nullptr;
  CU_OK(reinterpret_cast<CreateOfCuda3>(older)(&context, 0, 0));
  CU_OK(CU(cuCtxDestroy)(context));
  CU_OK(reinterpret_cast<decltype(&cuCtxCreate)>(newer)(&context, nullptr, 0, 0));
  CU_OK(CU(cuCtxDestroy)(context));
}

TEST_F(EntryPointContract, TheFlagChoosesTheDefaultStream) {
  void* legacy = nullptr;
  void* per_thread = nullptr;
  CU_OK(CU(cuGetProcAddress)("cuStreamSynchronize", &legacy, 13000,
                             CU_GET_PROC_ADDRESS_LEGACY_STREAM, nullptr));
  CU_OK(CU(cuGetProcAddress)("cuStreamSynchronize", &per_thread, 13000,
                             CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, nullptr));
  ASSERT_NE(legacy, nullptr);
  ASSERT_NE(per_thread, nullptr);
  EXPECT_NE(legacy, per_thread);
  CU_OK(reinterpret_cast<decltype(&cuStreamSynchronize)>(per_thread)(nullptr));
}

TEST_F(EntryPointContract, TheRuntimeHandsOutDriverFunctions) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSymbolNotFound;
  RT_OK(cudaGetDriverEntryPointByVersion("cuMemGetInfo", &function, 12000, cudaEnableDefault,
                                         &status));
  ASSERT_EQ(status, cudaDriverEntryPointSuccess);
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CU_OK(reinterpret_cast<decltype(&cuMemGetInfo)>(function)(&free_bytes, &total_bytes));
  EXPECT_GE(total_bytes, free_bytes);
}

TEST_F(EntryPointContract, TheRuntimeSaysWhatTheDriverLacks) {
  void* function = &function;
  cudaDriverEntryPointQueryResult status = cudaDriverEntryPointSuccess;
  cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 12000, cudaEnableDefault,
                                   &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointSymbolNotFound);
  status = cudaDriverEntryPointSuccess;
  cudaGetDriverEntryPointByVersion("cuMemCreate", &function, 9000, cudaEnableDefault, &status);
  EXPECT_EQ(function, nullptr);
  EXPECT_EQ(status, cudaDriverEntryPointVersionNotSufficent);
}

}  // namespace
}  // namespace contract
