// Contexts: current per thread, primary by reference count, and what the runtime does to them.

#include <thread>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class ContextContract : public ContractTest {};

CUcontext Current() {
  CUcontext context = nullptr;
  EXPECT_CU(CUDA_SUCCESS, CU(cuCtxGetCurrent)(&context));
  return context;
}

// Runs `body` on a thread that never made a CUDA call.
template <typename Body>
void OnFreshThread(Body body) {
  std::thread(body).join();
}

TEST_F(ContextContract, AThreadStartsWithoutContext) {
  OnFreshThread([] {
    EXPECT_EQ(Current(), nullptr);
    CUdeviceptr address = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuMemAlloc)(&address, 4096));
    CUdevice device = 0;
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxGetDevice)(&device));
  });
}

TEST_F(ContextContract, TheRuntimeBindsThePrimaryContext) {
  CUcontext primary = nullptr;
  CU_OK(CU(cuDevicePrimaryCtxRetain)(&primary, 0));
  OnFreshThread([primary] {
    RT_OK(cudaFree(nullptr));
    EXPECT_EQ(Current(), primary);
  });
  CU_OK(CU(cuDevicePrimaryCtxRelease)(0));
}

TEST_F(ContextContract, TheRuntimeWorksInAContextOfTheJob) {
  OnFreshThread([] {
    CUcontext own = nullptr;
    CU_OK(CU(cuCtxCreate)(&own, nullptr, 0, 0));
    void* pointer = nullptr;
    RT_OK(cudaMalloc(&pointer, 4096));
    CUcontext owner = nullptr;
    CU_OK(CU(cuPointerGetAttribute)(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, Address(pointer)));
    EXPECT_EQ(owner, own);
    EXPECT_EQ(Current(), own);
    RT_OK(cudaFree(pointer));
    CU_OK(CU(cuCtxDestroy)(own));
  });
}

TEST_F(ContextContract, TheRuntimeBindsAgainAfterTheJobDroppedTheContext) {
  OnFreshThread([] {
    RT_OK(cudaFree(nullptr));
    CU_OK(CU(cuCtxSetCurrent)(nullptr));
    void* pointer = nullptr;
    RT_OK(cudaMalloc(&pointer, 4096));
    EXPECT_NE(Current(), nullptr);
    RT_OK(cudaFree(pointer));
  });
}

TEST_F(ContextContract, PrimaryContextIsOneForTheDevice) {
  CUcontext first = nullptr;
  CUcontext second = nullptr;
  CU_OK(CU(cuDevicePrimaryCtxRetain)(&first, 0));
  CU_OK(CU(cuDevicePrimaryCtxRetain)(&second, 0));
  EXPECT_EQ(first, second);
  CU_OK(CU(cuDevicePrimaryCtxRelease)(0));
  CU_OK(CU(cuDevicePrimaryCtxRelease)(0));
  unsigned flags = 0;
  int active = 0;
  CU_OK(CU(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  EXPECT_EQ(active, 1);  // the runtime holds it still
}

TEST_F(ContextContract, PushAndPopFormAStack) {
  OnFreshThread([] {
    CUcontext first = nullptr;
    CUcontext second = nullptr;
    CUcontext popped = nullptr;
    CU_OK(CU(cuCtxCreate)(&first, nullptr, 0, 0));
    CU_OK(CU(cuCtxCreate)(&second, nullptr, 0, 0));
    EXPECT_EQ(Current(), second);
    CU_OK(CU(cuCtxPopCurrent)(&popped));
    EXPECT_EQ(popped, second);
    EXPECT_EQ(Current(), first);
    CU_OK(CU(cuCtxPopCurrent)(&popped));
    EXPECT_EQ(popped, first);
    EXPECT_EQ(Current(), nullptr);
    EXPECT_CU(CUDA_ERROR_INVALID_CONTEXT, CU(cuCtxPopCurrent)(&popped));
    CU_OK(CU(cuCtxPushCurrent)(first));
    EXPECT_EQ(Current(), first);
    CU_OK(CU(cuCtxDestroy)(second));
    CU_OK(CU(cuCtxDestroy)(first));
    EXPECT_EQ(Current(), nullptr);
  });
}

TEST_F(ContextContract, DestroyedContextTakesItsMemoryWithIt) {
  OnFreshThread([] {
    CUcontext own = nullptr;
    CUdeviceptr address = 0;
    CU_OK(CU(cuCtxCreate)(&own, nullptr, 0, 0));
    CU_OK(CU(cuMemAlloc)(&address, 4096));
    CU_OK(CU(cuCtxDestroy)(own));
    RT_OK(cudaFree(nullptr));
    EXPECT_NE(int{CU(cuMemFree)(address)}, int{CUDA_SUCCESS});
    cudaGetLastError();
  });
}

TEST_F(ContextContract, AWrongOrdinalLeavesTheDeviceAsItWas) {
  EXPECT_RT(cudaErrorInvalidDevice, cudaSetDevice(DeviceCount()));
  EXPECT_RT(cudaErrorInvalidDevice, cudaSetDevice(-1));
  int device = -1;
  RT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, 0);
  cudaGetLastError();
}

TEST_F(ContextContract, DeviceChoiceIsPerThread) {
  const int last = DeviceCount() - 1;
  RT_OK(cudaSetDevice(last));
  OnFreshThread([] {
    int device = -1;
    RT_OK(cudaGetDevice(&device));
    EXPECT_EQ(device, 0);
  });
  int device = -1;
  RT_OK(cudaGetDevice(&device));
  EXPECT_EQ(device, last);
  RT_OK(cudaSetDevice(0));
}

TEST_F(ContextContract, SetDeviceMakesItsPrimaryContextCurrent) {
  for (int device = 0; device < DeviceCount(); ++device) {
    RT_OK(cudaSetDevice(device));
    CUdevice current = -1;
    CU_OK(CU(cuCtxGetDevice)(&current));
    EXPECT_EQ(current, device);
  }
  RT_OK(cudaSetDevice(0));
}

TEST_F(ContextContract, ContextFlagsAreKept) {
  OnFreshThread([] {
    CUcontext own = nullptr;
    unsigned flags = 0;
    CU_OK(CU(cuCtxCreate)(&own, nullptr, CU_CTX_SCHED_BLOCKING_SYNC, 0));
    CU_OK(CU(cuCtxGetFlags)(&flags));
    EXPECT_EQ(flags & CU_CTX_SCHED_MASK, unsigned{CU_CTX_SCHED_BLOCKING_SYNC});
    CU_OK(CU(cuCtxDestroy)(own));
  });
}

}  // namespace
}  // namespace contract
