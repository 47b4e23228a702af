// Superseded forms whose meaning is that of a newer one: kept because programs built long ago, and
// cuGetProcAddress for old versions, still ask for them. Forms with 32-bit device addresses are not
// here; they answer CUDA_ERROR_NOT_SUPPORTED.
// Thread rule: callable from any thread.

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "simgpu/driver/state.h"

extern "C" {
// The header hides these while superseded forms are visible.
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context);
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context);
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext* context);
CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device);
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags);
CUresult CUDAAPI cuMemHostRegister_v2(void* address, size_t bytes, unsigned flags);
CUresult CUDAAPI cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags);
}

SIMGPU_API CUresult CUDAAPI cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return cuCtxCreate_v2(context, flags, device);
}
SIMGPU_API CUresult CUDAAPI cuCtxDestroy(CUcontext context) { return cuCtxDestroy_v2(context); }
SIMGPU_API CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  return cuCtxPushCurrent_v2(context);
}
SIMGPU_API CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  return cuCtxPopCurrent_v2(context);
}
SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  return cuDevicePrimaryCtxRelease_v2(device);
}
SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  return cuDevicePrimaryCtxReset_v2(device);
}
SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}
SIMGPU_API CUresult CUDAAPI cuMemHostRegister(void* address, size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(address, bytes, flags);
}
SIMGPU_API CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle,
                                               unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}
