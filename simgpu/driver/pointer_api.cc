// Questions about pointers: cuPointerGetAttribute(s), cuPointerSetAttribute.
// Thread rule: every entry point takes the driver lock.

#include <cuda.h>

#include <cstring>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/context.h"
#include "simgpu/driver/guard.h"
#include "simgpu/driver/pool.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

bool IsHostKind(const Range& range) {
  return range.kind == Kind::kPinned || range.kind == Kind::kRegistered;
}

template <typename T>
CUresult Answer(void* out, T value) {
  std::memcpy(out, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUmemorytype TypeOf(const Range& range) {
  const bool host = IsHostKind(range) || (range.physical != nullptr && range.physical->host_backed);
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUresult HostPointer(const Range& range, CUdeviceptr address, void* out) {
  const bool reachable = IsHostKind(range) || range.kind == Kind::kManaged;
  if (!reachable) return CUDA_ERROR_INVALID_VALUE;
  return Answer(out, reinterpret_cast<void*>(address));
}

CUresult HandleTypes(const Range& range, void* out) {
  const bool fd = range.kind == Kind::kMapping && range.physical->prop.requestedHandleTypes ==
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return Answer<unsigned long long>(out, fd ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0);
}

CUresult AttributeOf(const Range& range, CUdeviceptr address, CUpointer_attribute which,
                     void* out) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      // VMM and pool memory belongs to no context.
      return range.owner == nullptr ? CUDA_ERROR_INVALID_VALUE : Answer(out, range.owner);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return Answer<unsigned>(out, TypeOf(range));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return Answer(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return HostPointer(range, address, out);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return Answer<unsigned>(out, 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return Answer<unsigned long long>(out, range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return Answer<unsigned>(out, range.kind == Kind::kManaged);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return Answer<int>(out, range.device >= 0        ? range.device
                              : range.owner != nullptr ? range.owner->device
                                                       : CU_DEVICE_INVALID);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return Answer<int>(out, range.kind == Kind::kPlain);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return Answer(out, range.base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return Answer<size_t>(out, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return Answer<int>(out, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return HandleTypes(range, out);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Answer(out, range.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return Answer<size_t>(out, range.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return Answer(out, range.base);
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return Answer<unsigned long long>(out, range.buffer_id);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return Answer<int>(out, 0);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return Answer<int>(out, 0);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

size_t BytesOf(CUpointer_attribute which) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return 4;
    default:
      return 8;
  }
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                                  CUdeviceptr ptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = FindRange(ptr);
  if (data == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return AttributeOf(*range, ptr, attribute, data);
}

// Unlike the single form it answers for unknown pointers too: zeros, and CUDA_SUCCESS.
SIMGPU_API CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                                   void** data, CUdeviceptr ptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Range* range = FindRange(ptr);
  for (unsigned i = 0; i < count; ++i) {
    std::memset(data[i], 0, BytesOf(attributes[i]));
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      Answer<int>(data[i], CU_DEVICE_INVALID);
    if (range == nullptr) continue;
    const CUresult result = AttributeOf(*range, ptr, attributes[i], data[i]);
    if (result == CUDA_ERROR_NOT_SUPPORTED) return result;
  }
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                                  CUdeviceptr ptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
      FindRange(ptr) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;  // every copy that the documentation lets be synchronous already is
}
