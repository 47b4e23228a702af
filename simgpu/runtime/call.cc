// Thread state and primary contexts. Threads: see the header; the lock is never held while another
// lock of the runtime is taken.

#include "simgpu/runtime/call.h"

#include <array>
#include <atomic>
#include <mutex>

namespace simgpu::runtime {
namespace {

constexpr int kMaxDevices = 64;

struct ThreadState {
  cudaError_t last = cudaSuccess;
  int device = 0;
  bool bound = false;
  uint64_t reset_seen = 0;
};

thread_local ThreadState thread_state;

std::mutex primaries_lock;
struct Primary {
  CUcontext context = nullptr;  // held: retained once by the runtime
  CUcontext reset = nullptr;    // the last one that was reset: stale wherever it is still current
};
std::array<Primary, kMaxDevices> primaries;
std::atomic<uint64_t> resets{0};

// After a fault on the device every call fails until the device is reset, so forgetting the error
// would hide it from a caller that only looks at cudaGetLastError.
bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
      return true;
    default:
      return false;
  }
}

bool IsStale(CUcontext context) {
  std::lock_guard<std::mutex> guard(primaries_lock);
  for (const Primary& primary : primaries) {
    if (primary.reset == context && primary.context != context) return true;
  }
  return false;
}

}  // namespace

cudaError_t Record(int code) {
  const auto error = static_cast<cudaError_t>(code);
  if (error != cudaSuccess) thread_state.last = error;
  return error;
}

bool ThreadIsBound() {
  return thread_state.bound && thread_state.reset_seen == resets.load(std::memory_order_acquire);
}

int ThreadDevice(const Driver& driver) {
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr && !IsStale(current) &&
      driver.cuCtxGetDevice(&device) == CUDA_SUCCESS) {
    return device;
  }
  return thread_state.device;
}

CUresult RetainPrimary(const Driver& driver, int device, CUcontext* context) {
  if (device < 0 || device >= kMaxDevices) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> guard(primaries_lock);
  Primary& primary = primaries[device];
  if (primary.context == nullptr) {
    CUdevice handle = 0;
    if (CUresult result = driver.cuDeviceGet(&handle, device); result != CUDA_SUCCESS)
      return result;
    CUresult result = driver.cuDevicePrimaryCtxRetain(&primary.context, handle);
    if (result != CUDA_SUCCESS) {
      primary.context = nullptr;
      return result;
    }
  }
  *context = primary.context;
  return CUDA_SUCCESS;
}

CUresult ResetPrimary(const Driver& driver, int device) {
  if (device < 0 || device >= kMaxDevices) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard<std::mutex> guard(primaries_lock);
  Primary& primary = primaries[device];
  if (primary.context != nullptr) {
    driver.cuDevicePrimaryCtxRelease(device);
    primary.reset = primary.context;
    primary.context = nullptr;
  }
  resets.fetch_add(1, std::memory_order_acq_rel);
  return driver.cuDevicePrimaryCtxReset(device);
}

CUresult UseDevice(const Driver& driver, int device) {
  const uint64_t seen = resets.load(std::memory_order_acquire);
  CUcontext context = nullptr;
  if (CUresult result = RetainPrimary(driver, device, &context); result != CUDA_SUCCESS) {
    return result;
  }
  if (CUresult result = driver.cuCtxSetCurrent(context); result != CUDA_SUCCESS) return result;
  thread_state.device = device;
  thread_state.bound = true;
  thread_state.reset_seen = seen;
  return CUDA_SUCCESS;
}

CUresult BindThread(const Driver& driver, bool* changed) {
  const uint64_t seen = resets.load(std::memory_order_acquire);
  CUcontext current = nullptr;
  if (CUresult result = driver.cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  if (current != nullptr && !IsStale(current)) {
    thread_state.bound = true;
    thread_state.reset_seen = seen;
    return CUDA_SUCCESS;
  }
  *changed = true;
  return UseDevice(driver, thread_state.device);
}

}  // namespace simgpu::runtime

using simgpu::runtime::IsSticky;

SIMGPU_RUNTIME_API cudaError_t cudaGetLastError() {
  auto& last = simgpu::runtime::thread_state.last;
  const cudaError_t error = last;
  if (!IsSticky(error)) last = cudaSuccess;
  return error;
}

SIMGPU_RUNTIME_API cudaError_t cudaPeekAtLastError() { return simgpu::runtime::thread_state.last; }
