// cuMemAlloc and its family, cuMemFree, cuMemGetInfo, cuMemGetAddressRange.
// Thread rule: every entry point takes the driver lock; cuMemFree waits for the device without it.

#include <cuda.h>

#include "simgpu/driver/alloc.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/pool.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

// Microseconds: what third parties measured for small and large requests.
double AllocSeconds(size_t bytes) { return 180e-6 + static_cast<double>(bytes) * 15e-15; }
constexpr double kFreeSeconds = 50e-6;
constexpr size_t kPitchAlignment = 512;

using Lock = std::lock_guard<std::recursive_mutex>;

CUresult BeginAllocation(CUcontext* context) {
  if (CUresult bad = RequireContext(context); bad != CUDA_SUCCESS) return bad;
  return ForbidDuringCapture();
}

CUresult AllocatePlain(CUdeviceptr* address, size_t bytes) {
  CUcontext context = nullptr;
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = BeginAllocation(&context); bad != CUDA_SUCCESS) return bad;
  CUresult result = CUDA_SUCCESS;
  Range* range = AllocateRange(Kind::kPlain, context->device, bytes, &result);
  ChargeHost(AllocSeconds(bytes));
  if (range == nullptr) return result;
  range->owner = context;
  *address = range->base;
  return CUDA_SUCCESS;
}

// The allocation that starts at `address` and that cuMemFree may end, or null.
Range* Freeable(CUdeviceptr address) {
  Range* range = FindRange(address);
  if (range == nullptr || range->base != address) return nullptr;
  const bool ours = range->kind == Kind::kPlain || range->kind == Kind::kManaged ||
                    (range->kind == Kind::kPool && range->live);
  return ours ? range : nullptr;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuMemAlloc(CUdeviceptr* dptr, size_t bytesize) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  return AllocatePlain(dptr, bytesize);
}

SIMGPU_API CUresult CUDAAPI cuMemAllocPitch(CUdeviceptr* dptr, size_t* pitch, size_t width,
                                            size_t height, unsigned element) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (pitch == nullptr || width == 0 || height == 0) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
  if (row < width || row > SIZE_MAX / height) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = AllocatePlain(dptr, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

SIMGPU_API CUresult CUDAAPI cuMemFree(CUdeviceptr dptr) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = BeginAllocation(&context); bad != CUDA_SUCCESS) return bad;
  if (dptr == 0) return CUDA_SUCCESS;
  {
    Lock hold(DriverLock());
    if (Freeable(dptr) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  const CUresult waited = SynchronizeDevice(context->device);
  if (waited != CUDA_SUCCESS) return waited;
  Lock hold(DriverLock());
  Range* range = Freeable(dptr);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ChargeHost(kFreeSeconds);
  if (range->kind == Kind::kPool) {
    range->free_queued = true;
    ReturnToPool(range);
    return CUDA_SUCCESS;
  }
  FreeRange(range, "freed by cuMemFree");
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemGetInfo(size_t* free, size_t* total) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  if (free == nullptr || total == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *total = GetConfig().memory_bytes;
  *free = *total - NodeUsedBytes(context->device);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* base, size_t* size,
                                                 CUdeviceptr dptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = FindRange(dptr);
  const bool known = range != nullptr && range->live && range->kind != Kind::kPinned &&
                     range->kind != Kind::kRegistered;
  if (!known) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = range->base;
  if (size != nullptr) *size = range->bytes;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned flags) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = BeginAllocation(&context); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  // Managed memory counts against its device: kinder would be to let it spill.
  Range* range = AllocateRange(Kind::kManaged, context->device, bytesize, &result);
  ChargeHost(AllocSeconds(bytesize));
  if (range == nullptr) return result;
  range->owner = context;
  range->flags = flags;
  *dptr = range->base;
  return CUDA_SUCCESS;
}
