// Questions about addresses, registrations of them, and IPC. The driver knows chunks; the job must
// be told about buffers.

#include "interpose/hook_gate.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

// The pool that stream-ordered memory of the arena passes for.
CUmemoryPool DefaultPool(CUdevice device) {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUmemoryPool pool = nullptr;
  if (driver == nullptr || driver->cuDeviceGetDefaultMemPool == nullptr) return nullptr;
  return driver->cuDeviceGetDefaultMemPool(&pool, device) == CUDA_SUCCESS ? pool : nullptr;
}

// Corrects one answer of the driver, which took mapped memory for what it is below. False: the
// driver's answer stands.
bool Correct(CUpointer_attribute attribute, const BufferFacts& facts, void* data) {
  if (data == nullptr) return false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = facts.base;
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = facts.bytes;
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<uint64_t*>(data) = facts.id;
      return true;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      if (facts.context == nullptr) return false;
      *static_cast<CUcontext*>(data) = facts.context;
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      if (facts.context != nullptr) return false;
      *static_cast<CUmemoryPool*>(data) = DefaultPool(facts.device);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      // One byte: callers pass bool or int, and the driver has just cleared its full width.
      *static_cast<unsigned char*>(data) = ManagerIpcCapable() ? 1 : 0;
      return true;
    default:
      return false;
  }
}

CUresult OpenHandle(CUresult (*real)(CUdeviceptr*, CUipcMemHandle, unsigned), CUdeviceptr* address,
                    CUipcMemHandle handle, unsigned flags) {
  Guard guard;
  CUresult result;
  if (Manages(guard) && address != nullptr &&
      ManagerIpcOpenHandle(guard, address, handle, &result)) {
    return result;
  }
  return real(address, handle, flags);
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  Guard guard;
  BufferFacts facts;
  if (!Manages(guard) || !ManagerDescribe(guard, address, &facts)) {
    return tidemark_real_cuMemGetAddressRange_v2(base, bytes, address);
  }
  if (base != nullptr) *base = facts.base;
  if (bytes != nullptr) *bytes = facts.bytes;
  return CUDA_SUCCESS;
}

CUresult Hook_cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                    CUdeviceptr address) {
  Guard guard;
  BufferFacts facts;
  CUresult result = tidemark_real_cuPointerGetAttribute(data, attribute, address);
  // Mapped memory has no context or pool: the driver may refuse to speak of them.
  bool answerable = result == CUDA_SUCCESS || result == CUDA_ERROR_INVALID_VALUE;
  if (!answerable || !Manages(guard) || !ManagerDescribe(guard, address, &facts)) return result;
  return Correct(attribute, facts, data) ? CUDA_SUCCESS : result;
}

CUresult Hook_cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                     CUdeviceptr address) {
  Guard guard;
  BufferFacts facts;
  CUresult result = tidemark_real_cuPointerGetAttributes(count, attributes, data, address);
  if (result != CUDA_SUCCESS || !Manages(guard) || !ManagerDescribe(guard, address, &facts)) {
    return result;
  }
  for (unsigned i = 0; i < count; ++i) Correct(attributes[i], facts, data[i]);
  return result;
}

CUresult Hook_cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                            CUmemRangeHandleType type, unsigned long long flags) {
  Guard guard;
  if (Manages(guard)) ManagerPin(guard, address, bytes, PinReason::kRegistered);
  return tidemark_real_cuMemGetHandleForAddressRange(handle, address, bytes, type, flags);
}

CUresult Hook_cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
                                  CUdeviceptr address, size_t bytes, unsigned long long flags) {
  Guard guard;
  if (Manages(guard)) ManagerPin(guard, address, bytes, PinReason::kRegistered);
  return tidemark_real_cuMulticastBindAddr(multicast, offset, address, bytes, flags);
}

CUresult Hook_cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  Guard guard;
  CUresult result;
  if (Manages(guard) && handle != nullptr && ManagerIpcGetHandle(guard, handle, address, &result)) {
    return result;
  }
  return tidemark_real_cuIpcGetMemHandle(handle, address);
}

CUresult Hook_cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return OpenHandle(&tidemark_real_cuIpcOpenMemHandle, address, handle, flags);
}

CUresult Hook_cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return OpenHandle(&tidemark_real_cuIpcOpenMemHandle_v2, address, handle, flags);
}

CUresult Hook_cuIpcCloseMemHandle(CUdeviceptr address) {
  Guard guard;
  CUresult result;
  if (Manages(guard) && ManagerIpcClose(guard, address, &result)) return result;
  return tidemark_real_cuIpcCloseMemHandle(address);
}
