// The forms of CUDA 13 that name a pool by location: those of a device are the device's pools, the
// host has none here.
// Thread rule: that of the calls they stand for.

#include <cuda.h>

#include "simgpu/driver/state.h"

namespace {

// CUDA_SUCCESS with the device, or why there is no pool at `location`.
CUresult PoolDevice(const CUmemLocation* location, CUmemAllocationType type, CUdevice* device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!on_device || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  *device = location->id;
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult CUDAAPI cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                                   CUmemAllocationType type) {
  SIMGPU_ENTER();
  CUdevice device = 0;
  const CUresult bad = PoolDevice(location, type, &device);
  return bad != CUDA_SUCCESS ? bad : cuDeviceGetDefaultMemPool(pool, device);
}

SIMGPU_API CUresult CUDAAPI cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                            CUmemAllocationType type) {
  SIMGPU_ENTER();
  CUdevice device = 0;
  const CUresult bad = PoolDevice(location, type, &device);
  return bad != CUDA_SUCCESS ? bad : cuDeviceGetMemPool(pool, device);
}

SIMGPU_API CUresult CUDAAPI cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                            CUmemoryPool pool) {
  SIMGPU_ENTER();
  CUdevice device = 0;
  const CUresult bad = PoolDevice(location, type, &device);
  return bad != CUDA_SUCCESS ? bad : cuDeviceSetMemPool(device, pool);
}
