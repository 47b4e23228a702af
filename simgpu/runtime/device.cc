// Devices: choosing, asking, resetting, peer access. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

constexpr unsigned kKnownFlags = cudaDeviceMask & ~cudaDeviceMapHost;

int CheckDevice(const Driver& d, int device) {
  CUdevice handle = 0;
  return d.cuDeviceGet(&handle, device);
}

int CountDevices(const Driver& d, int* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  const int code = d.cuDeviceGetCount(count);
  return code == CUDA_SUCCESS && *count == 0 ? int{cudaErrorNoDevice} : code;
}

int SetDevice(const Driver& d, int device) {
  if (int code = CheckDevice(d, device)) return code;
  return UseDevice(d, device);
}

int InitDevice(const Driver& d, int device, unsigned device_flags, unsigned flags) {
  if ((flags & ~unsigned{cudaInitDeviceFlagsAreValid}) != 0) return cudaErrorInvalidValue;
  if (int code = CheckDevice(d, device)) return code;
  if ((flags & cudaInitDeviceFlagsAreValid) != 0) {
    if (int code = d.cuDevicePrimaryCtxSetFlags(device, device_flags & kKnownFlags)) return code;
  }
  CUcontext context = nullptr;
  return RetainPrimary(d, device, &context);
}

int SetFlags(const Driver& d, unsigned flags) {
  if ((flags & ~unsigned{cudaDeviceMask}) != 0) return cudaErrorInvalidValue;
  return d.cuDevicePrimaryCtxSetFlags(ThreadDevice(d), flags & kKnownFlags);
}

int GetFlags(const Driver& d, unsigned* flags) {
  if (flags == nullptr) return cudaErrorInvalidValue;
  CUcontext current = nullptr;
  int active = 0;
  int code = d.cuCtxGetCurrent(&current);
  if (code != CUDA_SUCCESS) return code;
  code = current != nullptr ? d.cuCtxGetFlags(flags)
                            : d.cuDevicePrimaryCtxGetState(ThreadDevice(d), flags, &active);
  if (code == CUDA_SUCCESS) *flags |= cudaDeviceMapHost;
  return code;
}

int GetDevice(const Driver& d, int* device) {
  if (device == nullptr) return cudaErrorInvalidValue;
  *device = ThreadDevice(d);
  return cudaSuccess;
}

int PeerContext(const Driver& d, int peer, CUcontext* context) {
  if (int code = CheckDevice(d, peer)) return code;
  if (peer == ThreadDevice(d)) return cudaErrorInvalidDevice;
  return RetainPrimary(d, peer, context);
}

int EnablePeer(const Driver& d, int peer, unsigned flags) {
  CUcontext context = nullptr;
  if (flags != 0) return cudaErrorInvalidValue;
  if (int code = PeerContext(d, peer, &context)) return code;
  return d.cuCtxEnablePeerAccess(context, 0);
}

int DisablePeer(const Driver& d, int peer) {
  CUcontext context = nullptr;
  if (int code = PeerContext(d, peer, &context)) return code;
  return d.cuCtxDisablePeerAccess(context);
}

int Attribute(const Driver& d, CUdevice device, CUdevice_attribute attribute) {
  int value = 0;
  d.cuDeviceGetAttribute(&value, attribute, device);
  return value;
}

// The device that meets the asked major, minor and memory best; the first on ties.
int Choose(const Driver& d, int* chosen, const cudaDeviceProp* wanted) {
  int count = 0;
  if (chosen == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
  if (int code = CountDevices(d, &count)) return code;
  int best = -1;
  for (int device = 0; device < count; ++device) {
    size_t bytes = 0;
    d.cuDeviceTotalMem(&bytes, device);
    const int major = Attribute(d, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int minor = Attribute(d, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    int score = bytes >= wanted->totalGlobalMem ? 1 : 0;
    if (major > wanted->major || (major == wanted->major && minor >= wanted->minor)) score += 2;
    if (score > best) {
      best = score;
      *chosen = device;
    }
  }
  return cudaSuccess;
}

}  // namespace

SIMGPU_QUERY(cudaGetDeviceCount, (int* count), CountDevices(d, count))
SIMGPU_QUERY(cudaSetDevice, (int device), SetDevice(d, device))
SIMGPU_QUERY(cudaGetDevice, (int* device), GetDevice(d, device))
SIMGPU_QUERY(cudaInitDevice, (int device, unsigned device_flags, unsigned flags),
             InitDevice(d, device, device_flags, flags))
SIMGPU_QUERY(cudaSetDeviceFlags, (unsigned flags), SetFlags(d, flags))
SIMGPU_QUERY(cudaGetDeviceFlags, (unsigned* flags), GetFlags(d, flags))
SIMGPU_QUERY(cudaChooseDevice, (int* device, const cudaDeviceProp* wanted),
             Choose(d, device, wanted))
SIMGPU_QUERY(cudaDeviceGetAttribute, (int* value, cudaDeviceAttr attribute, int device),
             d.cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device))
SIMGPU_QUERY(cudaDeviceGetPCIBusId, (char* text, int bytes, int device),
             d.cuDeviceGetPCIBusId(text, bytes, device))
SIMGPU_QUERY(cudaDeviceGetByPCIBusId, (int* device, const char* text),
             d.cuDeviceGetByPCIBusId(device, text))
SIMGPU_QUERY(cudaDeviceGetP2PAttribute,
             (int* value, cudaDeviceP2PAttr attribute, int source, int target),
             d.cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), source,
                                       target))
SIMGPU_QUERY(cudaDeviceCanAccessPeer, (int* can, int device, int peer),
             d.cuDeviceCanAccessPeer(can, device, peer))
SIMGPU_QUERY(cudaDeviceReset, (), ResetPrimary(d, ThreadDevice(d)))

SIMGPU_CALL(cudaDeviceSynchronize, (), d.cuCtxSynchronize())
SIMGPU_CALL(cudaDeviceSetLimit, (cudaLimit limit, size_t value),
            d.cuCtxSetLimit(static_cast<CUlimit>(limit), value))
SIMGPU_CALL(cudaDeviceGetLimit, (size_t * value, cudaLimit limit),
            d.cuCtxGetLimit(value, static_cast<CUlimit>(limit)))
SIMGPU_CALL(cudaDeviceGetCacheConfig, (cudaFuncCache * config),
            d.cuCtxGetCacheConfig(reinterpret_cast<CUfunc_cache*>(config)))
SIMGPU_CALL(cudaDeviceSetCacheConfig, (cudaFuncCache config),
            d.cuCtxSetCacheConfig(static_cast<CUfunc_cache>(config)))
SIMGPU_CALL(cudaDeviceGetStreamPriorityRange, (int* least, int* greatest),
            d.cuCtxGetStreamPriorityRange(least, greatest))
SIMGPU_CALL(cudaCtxResetPersistingL2Cache, (), d.cuCtxResetPersistingL2Cache())
SIMGPU_CALL(cudaDeviceFlushGPUDirectRDMAWrites,
            (cudaFlushGPUDirectRDMAWritesTarget target, cudaFlushGPUDirectRDMAWritesScope scope),
            d.cuFlushGPUDirectRDMAWrites(static_cast<CUflushGPUDirectRDMAWritesTarget>(target),
                                         static_cast<CUflushGPUDirectRDMAWritesScope>(scope)))
SIMGPU_CALL(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), EnablePeer(d, peer, flags))
SIMGPU_CALL(cudaDeviceDisablePeerAccess, (int peer), DisablePeer(d, peer))

}  // namespace simgpu::runtime
