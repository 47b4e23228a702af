// Which pool a device's stream-ordered memory comes from. The arena passes for the default pool;
// when the job chooses another one, such memory is the driver's.

#include "interpose/hook_gate.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

bool IsDefault(CUdevice device, CUmemoryPool pool) {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUmemoryPool standard = nullptr;
  return driver != nullptr && driver->cuDeviceGetDefaultMemPool != nullptr &&
         driver->cuDeviceGetDefaultMemPool(&standard, device) == CUDA_SUCCESS && pool == standard;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Guard guard;
  CUresult result = tidemark_real_cuDeviceSetMemPool(device, pool);
  if (result == CUDA_SUCCESS && Manages(guard)) {
    ManagerUsesOwnPool(guard, device, !IsDefault(device, pool));
  }
  return result;
}

CUresult Hook_cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                              CUmemoryPool pool) {
  Guard guard;
  CUresult result = tidemark_real_cuMemSetMemPool(location, type, pool);
  if (result == CUDA_SUCCESS && Manages(guard) && type == CU_MEM_ALLOCATION_TYPE_PINNED &&
      location->type == CU_MEM_LOCATION_TYPE_DEVICE) {
    ManagerUsesOwnPool(guard, location->id, !IsDefault(location->id, pool));
  }
  return result;
}
