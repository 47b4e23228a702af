// Allocation: device, pitched, managed, pinned host, IPC, queries about pointers. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

constexpr unsigned kElementBytes = 4;  // alignment asked of cuMemAllocPitch: the smallest it takes
constexpr unsigned kHostFlags =
    cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;

// The runtime answers a request for nothing with a null pointer; the driver refuses it.
int Malloc(const Driver& d, void** pointer, size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return d.cuMemAlloc(AddressOf(pointer), bytes);
}

int MallocPitch(const Driver& d, void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    *pitch = 0;
    return cudaSuccess;
  }
  return d.cuMemAllocPitch(AddressOf(pointer), pitch, width, height, kElementBytes);
}

int Malloc3D(const Driver& d, cudaPitchedPtr* pitched, cudaExtent extent) {
  if (pitched == nullptr) return cudaErrorInvalidValue;
  size_t rows = 0;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  void* pointer = nullptr;
  size_t pitch = 0;
  if (int code = MallocPitch(d, &pointer, &pitch, extent.width, rows)) return code;
  *pitched = {pointer, pitch, extent.width, extent.height};
  return cudaSuccess;
}

int MallocManaged(const Driver& d, void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0) return cudaErrorInvalidValue;
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return cudaErrorInvalidValue;
  return d.cuMemAllocManaged(AddressOf(pointer), bytes, flags);
}

int Free(const Driver& d, void* pointer) {
  return pointer == nullptr ? int{cudaSuccess} : int{d.cuMemFree(Address(pointer))};
}

int HostAlloc(const Driver& d, void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr || (flags & ~kHostFlags) != 0) return cudaErrorInvalidValue;
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  return d.cuMemHostAlloc(pointer, bytes, flags);
}

int FreeHost(const Driver& d, void* pointer) {
  return pointer == nullptr ? int{cudaSuccess} : int{d.cuMemFreeHost(pointer)};
}

cudaMemoryType RuntimeType(unsigned driver_type, unsigned managed) {
  if (managed != 0) return cudaMemoryTypeManaged;
  if (driver_type == CU_MEMORYTYPE_HOST) return cudaMemoryTypeHost;
  if (driver_type == CU_MEMORYTYPE_DEVICE) return cudaMemoryTypeDevice;
  return cudaMemoryTypeUnregistered;
}

// A pointer that the driver does not know is no error: it is host memory nobody registered.
int PointerAttributes(const Driver& d, cudaPointerAttributes* out, const void* pointer) {
  if (out == nullptr) return cudaErrorInvalidValue;
  unsigned type = 0;
  unsigned managed = 0;
  int device = cudaInvalidDeviceId;
  CUdeviceptr on_device = 0;
  void* on_host = nullptr;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
      CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void* values[] = {&type, &managed, &device, &on_device, &on_host};
  if (int code = d.cuPointerGetAttributes(5, attributes, values, Address(pointer))) return code;
  *out = {};
  out->type = RuntimeType(type, managed);
  const bool known = out->type != cudaMemoryTypeUnregistered;
  out->device = known ? device : cudaInvalidDeviceId;
  out->devicePointer = known ? reinterpret_cast<void*>(on_device) : nullptr;
  out->hostPointer = known ? on_host : const_cast<void*>(pointer);
  return cudaSuccess;
}

CUmemLocation Location(cudaMemLocation location) {
  CUmemLocation out = {};
  out.type = static_cast<CUmemLocationType>(location.type);
  out.id = location.id;
  return out;
}

// The batch forms name their locations in a list that the driver reads as its own type.
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));
CUmemLocation* Locations(cudaMemLocation* list) { return reinterpret_cast<CUmemLocation*>(list); }

CUipcMemHandle DriverHandle(const cudaIpcMemHandle_t& handle) {
  static_assert(sizeof(CUipcMemHandle) == sizeof(cudaIpcMemHandle_t));
  return __builtin_bit_cast(CUipcMemHandle, handle);
}

CUipcEventHandle DriverHandle(const cudaIpcEventHandle_t& handle) {
  return __builtin_bit_cast(CUipcEventHandle, handle);
}

}  // namespace

SIMGPU_CALL(cudaMalloc, (void** pointer, size_t bytes), Malloc(d, pointer, bytes))
SIMGPU_CALL(cudaMallocPitch, (void** pointer, size_t* pitch, size_t width, size_t height),
            MallocPitch(d, pointer, pitch, width, height))
SIMGPU_CALL(cudaMalloc3D, (cudaPitchedPtr * pitched, cudaExtent extent),
            Malloc3D(d, pitched, extent))
SIMGPU_CALL(cudaMallocManaged, (void** pointer, size_t bytes, unsigned flags),
            MallocManaged(d, pointer, bytes, flags))
SIMGPU_CALL(cudaFree, (void* pointer), Free(d, pointer))
SIMGPU_CALL(cudaMallocHost, (void** pointer, size_t bytes), HostAlloc(d, pointer, bytes, 0))
SIMGPU_CALL(cudaHostAlloc, (void** pointer, size_t bytes, unsigned flags),
            HostAlloc(d, pointer, bytes, flags))
SIMGPU_CALL(cudaFreeHost, (void* pointer), FreeHost(d, pointer))
SIMGPU_CALL(cudaHostRegister, (void* pointer, size_t bytes, unsigned flags),
            d.cuMemHostRegister(pointer, bytes, flags))
SIMGPU_CALL(cudaHostUnregister, (void* pointer), d.cuMemHostUnregister(pointer))
SIMGPU_CALL(cudaHostGetDevicePointer, (void** on_device, void* on_host, unsigned flags),
            d.cuMemHostGetDevicePointer(AddressOf(on_device), on_host, flags))
SIMGPU_CALL(cudaHostGetFlags, (unsigned* flags, void* pointer), d.cuMemHostGetFlags(flags, pointer))
SIMGPU_CALL(cudaMemGetInfo, (size_t * free_bytes, size_t* total_bytes),
            d.cuMemGetInfo(free_bytes, total_bytes))
SIMGPU_CALL(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void* pointer),
            PointerAttributes(d, out, pointer))

SIMGPU_CALL(cudaMemAdvise,
            (const void* pointer, size_t bytes, cudaMemoryAdvise advice, cudaMemLocation location),
            d.cuMemAdvise(Address(pointer), bytes, static_cast<CUmem_advise>(advice),
                          Location(location)))
SIMGPU_CALL_TWINS(cudaMemPrefetchAsync, _ptsz,
                  (const void* pointer, size_t bytes, cudaMemLocation location, unsigned flags,
                   cudaStream_t stream),
                  d.cuMemPrefetchAsync(Address(pointer), bytes, Location(location), flags, stream))
SIMGPU_CALL_TWINS(cudaMemPrefetchBatchAsync, _ptsz,
                  (void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                   size_t* indices, size_t location_count, unsigned long long flags,
                   cudaStream_t stream),
                  d.cuMemPrefetchBatchAsync(AddressOf(pointers), sizes, count, Locations(locations),
                                            indices, location_count, flags, stream))
SIMGPU_CALL_TWINS(cudaMemDiscardBatchAsync, _ptsz,
                  (void** pointers, size_t* sizes, size_t count, unsigned long long flags,
                   cudaStream_t stream),
                  d.cuMemDiscardBatchAsync(AddressOf(pointers), sizes, count, flags, stream))
SIMGPU_CALL_TWINS(cudaMemDiscardAndPrefetchBatchAsync, _ptsz,
                  (void** pointers, size_t* sizes, size_t count, cudaMemLocation* locations,
                   size_t* indices, size_t location_count, unsigned long long flags,
                   cudaStream_t stream),
                  d.cuMemDiscardAndPrefetchBatchAsync(AddressOf(pointers), sizes, count,
                                                      Locations(locations), indices, location_count,
                                                      flags, stream))
SIMGPU_CALL(cudaMemRangeGetAttribute,
            (void* data, size_t data_bytes, cudaMemRangeAttribute attribute, const void* pointer,
             size_t bytes),
            d.cuMemRangeGetAttribute(data, data_bytes,
                                     static_cast<CUmem_range_attribute>(attribute),
                                     Address(pointer), bytes))
SIMGPU_CALL(cudaMemRangeGetAttributes,
            (void** data, size_t* data_bytes, cudaMemRangeAttribute* attributes, size_t count,
             const void* pointer, size_t bytes),
            d.cuMemRangeGetAttributes(data, data_bytes,
                                      reinterpret_cast<CUmem_range_attribute*>(attributes), count,
                                      Address(pointer), bytes))

SIMGPU_CALL(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void* pointer),
            d.cuIpcGetMemHandle(reinterpret_cast<CUipcMemHandle*>(handle), Address(pointer)))
SIMGPU_CALL(cudaIpcOpenMemHandle, (void** pointer, cudaIpcMemHandle_t handle, unsigned flags),
            d.cuIpcOpenMemHandle(AddressOf(pointer), DriverHandle(handle), flags))
SIMGPU_CALL(cudaIpcCloseMemHandle, (void* pointer), d.cuIpcCloseMemHandle(Address(pointer)))
SIMGPU_CALL(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
            d.cuIpcGetEventHandle(reinterpret_cast<CUipcEventHandle*>(handle), event))
SIMGPU_CALL(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
            d.cuIpcOpenEventHandle(event, DriverHandle(handle)))

}  // namespace simgpu::runtime
