// Allocation: what the arena serves, and what the driver serves and is counted.
//
// Rule: plain, pitched and stream-ordered memory is the arena's. Pool, array and VMM memory of the
// job stays the driver's: room is made for it and it is counted. Managed memory is counted only: it
// may legally exceed the device, so there is no budget to refuse it by.

#include <string.h>

#include "interpose/hook_gate.h"
#include "interpose/outcome.h"
#include "interpose/outside.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

constexpr CUdevice kNoDevice = -1;

CUdevice CurrentDevice() {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUdevice device = kNoDevice;
  if (driver == nullptr || driver->cuCtxGetDevice(&device) != CUDA_SUCCESS) return kNoDevice;
  return device;
}

// Allocations inside a capture become nodes of the graph: nothing is allocated yet, and making room
// would do what a capture forbids.
bool IsCapturing(CUstream stream) {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver != nullptr && driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Count(const Guard& guard, OutsideKind kind, uint64_t name, OutsideAllocation allocation) {
  RememberOutside(kind, name, allocation);
  ManagerCountPassedThrough(guard, allocation.device, allocation.bytes, +1);
}

// Makes room on `device`, lets the driver allocate, and counts `*name` (an address or a handle).
template <typename Name, typename Call>
CUresult Charged(const Guard& guard, OutsideKind kind, CUdevice device, uint64_t bytes, Name* name,
                 const Call& call) {
  if (!ManagerMakeRoom(guard, device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call();
  if (result == CUDA_SUCCESS) Count(guard, kind, (uint64_t)*name, {bytes, device});
  return result;
}

// Lets the driver end an allocation. Forgotten before, because the name may be given out again by
// the time the call returns; remembered again if the driver refuses.
template <typename Call>
CUresult Uncounted(const Guard& guard, OutsideKind kind, uint64_t name, const Call& call) {
  OutsideAllocation allocation;
  bool last = ForgetOutside(kind, name, &allocation);
  CUresult result = call();
  if (!last) return result;
  if (result == CUDA_SUCCESS) {
    ManagerCountPassedThrough(guard, allocation.device, allocation.bytes, -1);
  } else {
    RememberOutside(kind, name, allocation);
  }
  return result;
}

template <typename Real>
CUresult AllocAsync(Real real, CUstream stream, CUdeviceptr* address, size_t bytes,
                    CUstream given) {
  auto call = [&] { return real(address, bytes, given); };
  Guard guard;
  if (!Manages(guard) || address == nullptr || bytes == 0) return call();
  CUresult result;
  if (TakeKnownOutcome(&result)) return result;
  if (ManagerAllocAsync(guard, address, bytes, stream, &result)) return result;
  if (IsCapturing(stream)) return call();
  return Charged(guard, OutsideKind::kAddress, CurrentDevice(), bytes, address, call);
}

template <typename Real>
CUresult AllocFromPoolAsync(Real real, CUstream stream, CUdeviceptr* address, size_t bytes,
                            CUmemoryPool pool, CUstream given) {
  auto call = [&] { return real(address, bytes, pool, given); };
  Guard guard;
  bool odd = address == nullptr || bytes == 0;
  if (!Manages(guard) || odd || IsCapturing(stream)) return call();
  return Charged(guard, OutsideKind::kAddress, CurrentDevice(), bytes, address, call);
}

template <typename Real>
CUresult FreeAsync(Real real, CUstream stream, CUdeviceptr address, CUstream given) {
  auto call = [&] { return real(address, given); };
  Guard guard;
  if (!Manages(guard) || address == 0) return call();
  CUresult result;
  if (ManagerFreeAsync(guard, address, stream, &result)) return result;
  return Uncounted(guard, OutsideKind::kAddress, address, call);
}

size_t BytesPerChannel(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;  // block-compressed and video formats: about a byte per texel and channel
  }
}

uint64_t ArrayBytes(size_t width, size_t height, size_t depth, CUarray_format format,
                    unsigned channels) {
  uint64_t texels = uint64_t{width} * (height != 0 ? height : 1) * (depth != 0 ? depth : 1);
  return texels * BytesPerChannel(format) * channels;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  auto call = [&] { return tidemark_real_cuMemAlloc_v2(address, bytes); };
  Guard guard;
  if (!Manages(guard) || address == nullptr || bytes == 0) return call();
  CUresult result;
  if (TakeKnownOutcome(&result)) return result;
  if (ManagerAlloc(guard, address, bytes, &result)) return result;
  return Charged(guard, OutsideKind::kAddress, CurrentDevice(), bytes, address, call);
}

CUresult Hook_cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width_bytes,
                                 size_t height, unsigned element_bytes) {
  auto call = [&] {
    return tidemark_real_cuMemAllocPitch_v2(address, pitch, width_bytes, height, element_bytes);
  };
  Guard guard;
  bool odd = address == nullptr || pitch == nullptr || width_bytes == 0 || height == 0;
  if (!Manages(guard) || odd) return call();
  CUresult result;
  if (ManagerAllocPitch(guard, address, pitch, width_bytes, height, element_bytes, &result)) {
    return result;
  }
  return Charged(guard, OutsideKind::kAddress, CurrentDevice(), width_bytes * height, address,
                 call);
}

CUresult Hook_cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  Guard guard;
  CUresult result = tidemark_real_cuMemAllocManaged(address, bytes, flags);
  if (Manages(guard) && result == CUDA_SUCCESS) {
    Count(guard, OutsideKind::kAddress, *address, {bytes, CurrentDevice()});
  }
  return result;
}

CUresult Hook_cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AllocAsync(&tidemark_real_cuMemAllocAsync, stream, address, bytes, stream);
}
CUresult Hook_cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return AllocAsync(&tidemark_real_cuMemAllocAsync_ptsz, PerThread(stream), address, bytes, stream);
}

CUresult Hook_cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return AllocFromPoolAsync(&tidemark_real_cuMemAllocFromPoolAsync, stream, address, bytes, pool,
                            stream);
}
CUresult Hook_cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                           CUstream stream) {
  return AllocFromPoolAsync(&tidemark_real_cuMemAllocFromPoolAsync_ptsz, PerThread(stream), address,
                            bytes, pool, stream);
}

CUresult Hook_cuMemFree_v2(CUdeviceptr address) {
  auto call = [&] { return tidemark_real_cuMemFree_v2(address); };
  Guard guard;
  if (!Manages(guard) || address == 0) return call();
  CUresult result;
  if (ManagerFree(guard, address, &result)) return result;
  return Uncounted(guard, OutsideKind::kAddress, address, call);
}

CUresult Hook_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return FreeAsync(&tidemark_real_cuMemFreeAsync, stream, address, stream);
}
CUresult Hook_cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return FreeAsync(&tidemark_real_cuMemFreeAsync_ptsz, PerThread(stream), address, stream);
}

CUresult Hook_cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  Guard guard;
  CUresult result;
  bool answerable = free_bytes != nullptr && total_bytes != nullptr;
  if (Manages(guard) && answerable && ManagerMemGetInfo(guard, free_bytes, total_bytes, &result)) {
    return result;
  }
  return tidemark_real_cuMemGetInfo_v2(free_bytes, total_bytes);
}

// NCCL creates host memory (HOST_NUMA) from threads without a context: nothing here asks for one.
CUresult Hook_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* properties, unsigned long long flags) {
  auto call = [&] { return tidemark_real_cuMemCreate(handle, bytes, properties, flags); };
  Guard guard;
  if (!Manages(guard) || handle == nullptr || properties == nullptr) return call();
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return call();
  return Charged(guard, OutsideKind::kVmmHandle, properties->location.id, bytes, handle, call);
}

CUresult Hook_cuMemRelease(CUmemGenericAllocationHandle handle) {
  auto call = [&] { return tidemark_real_cuMemRelease(handle); };
  Guard guard;
  if (!Manages(guard)) return call();
  return Uncounted(guard, OutsideKind::kVmmHandle, handle, call);
}

CUresult Hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  Guard guard;
  CUresult result = tidemark_real_cuMemRetainAllocationHandle(handle, address);
  if (!Manages(guard) || result != CUDA_SUCCESS) return result;
  RetainOutside(OutsideKind::kVmmHandle, *handle);
  ManagerPin(guard, reinterpret_cast<CUdeviceptr>(address), 0, PinReason::kRegistered);
  return result;
}

CUresult Hook_cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  auto call = [&] { return tidemark_real_cuArrayCreate_v2(array, shape); };
  Guard guard;
  if (!Manages(guard) || array == nullptr || shape == nullptr) return call();
  uint64_t bytes = ArrayBytes(shape->Width, shape->Height, 1, shape->Format, shape->NumChannels);
  return Charged(guard, OutsideKind::kArray, CurrentDevice(), bytes, array, call);
}

CUresult Hook_cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  auto call = [&] { return tidemark_real_cuArray3DCreate_v2(array, shape); };
  Guard guard;
  if (!Manages(guard) || array == nullptr || shape == nullptr) return call();
  uint64_t bytes =
      ArrayBytes(shape->Width, shape->Height, shape->Depth, shape->Format, shape->NumChannels);
  return Charged(guard, OutsideKind::kArray, CurrentDevice(), bytes, array, call);
}

CUresult Hook_cuArrayDestroy(CUarray array) {
  auto call = [&] { return tidemark_real_cuArrayDestroy(array); };
  Guard guard;
  if (!Manages(guard)) return call();
  return Uncounted(guard, OutsideKind::kArray, reinterpret_cast<uint64_t>(array), call);
}
