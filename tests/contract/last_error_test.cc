// The runtime's last error: what sets it, what clears it, whose it is.

#include <thread>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class LastErrorContract : public ContractTest {};

void Fail() { EXPECT_RT(cudaErrorInvalidDevice, cudaSetDevice(-1)); }

TEST_F(LastErrorContract, AFailureIsKeptUntilItIsTaken) {
  Fail();
  EXPECT_RT(cudaErrorInvalidDevice, cudaPeekAtLastError());
  EXPECT_RT(cudaErrorInvalidDevice, cudaGetLastError());
  EXPECT_RT(cudaSuccess, cudaGetLastError());
}

TEST_F(LastErrorContract, ASuccessDoesNotClearIt) {
  Fail();
  int count = 0;
  RT_OK(cudaGetDeviceCount(&count));
  EXPECT_RT(cudaErrorInvalidDevice, cudaGetLastError());
}

TEST_F(LastErrorContract, TheLaterFailureReplacesTheEarlier) {
  Fail();
  EXPECT_RT(cudaErrorInvalidValue, cudaMallocManaged(nullptr, 1, cudaMemAttachGlobal));
  EXPECT_RT(cudaErrorInvalidValue, cudaGetLastError());
}

TEST_F(LastErrorContract, EveryThreadHasItsOwn) {
  Fail();
  std::thread([] {
    EXPECT_RT(cudaSuccess, cudaPeekAtLastError());
    EXPECT_RT(cudaErrorInvalidValue, cudaMallocManaged(nullptr, 1, cudaMemAttachGlobal));
    EXPECT_RT(cudaErrorInvalidValue, cudaGetLastError());
  }).join();
  EXPECT_RT(cudaErrorInvalidDevice, cudaGetLastError());
}

TEST_F(LastErrorContract, AFailedLaunchIsKept) {
  void* args[] = {nullptr};
  const void* kernel = reinterpret_cast<const void*>(&ContractNothing);
  EXPECT_RT(cudaErrorInvalidConfiguration, cudaLaunchKernel(kernel, 0, 1, args, 0, nullptr));
  EXPECT_RT(cudaErrorInvalidConfiguration, cudaGetLastError());
}

TEST_F(LastErrorContract, DriverFailuresAreNotTheRuntimes) {
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuInit)(7));
  EXPECT_RT(cudaSuccess, cudaPeekAtLastError());
}

TEST_F(LastErrorContract, OutOfMemoryCanBeTakenAndForgotten) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  void* pointer = nullptr;
  RT_OK(cudaMemGetInfo(&free_bytes, &total_bytes));
  EXPECT_RT(cudaErrorMemoryAllocation, cudaMalloc(&pointer, 2 * total_bytes));
  EXPECT_RT(cudaErrorMemoryAllocation, cudaGetLastError());
  RT_OK(cudaMalloc(&pointer, 4096));
  RT_OK(cudaFree(pointer));
  EXPECT_RT(cudaSuccess, cudaGetLastError());
}

}  // namespace
}  // namespace contract
