// Questions about addresses, registrations of them, and IPC. The driver knows chunks; the job must
// be told about buffers.

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

// Corrects one answer of the driver about `address`, which lies in the buffer [base, base + bytes).
void CorrectAttribute(CUpointer_attribute attribute, CUdeviceptr base, size_t bytes, void* data) {
  if (data == nullptr) return;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = base;
      break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = bytes;
      break;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      // One byte: callers pass bool or int, and the driver has just cleared its full width.
      *static_cast<unsigned char*>(data) = ManagerIpcCapable() ? 1 : 0;
      break;
    default:
      break;
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
  CUdeviceptr found_base = 0;
  size_t found_bytes = 0;
  if (!Manages(guard) || !ManagerAddressRange(guard, address, &found_base, &found_bytes)) {
    return tidemark_real_cuMemGetAddressRange_v2(base, bytes, address);
  }
  if (base != nullptr) *base = found_base;
  if (bytes != nullptr) *bytes = found_bytes;
  return CUDA_SUCCESS;
}

CUresult Hook_cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                    CUdeviceptr address) {
  Guard guard;
  CUresult result = tidemark_real_cuPointerGetAttribute(data, attribute, address);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (result == CUDA_SUCCESS && Manages(guard) &&
      ManagerAddressRange(guard, address, &base, &bytes)) {
    CorrectAttribute(attribute, base, bytes, data);
  }
  return result;
}

CUresult Hook_cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                     CUdeviceptr address) {
  Guard guard;
  CUresult result = tidemark_real_cuPointerGetAttributes(count, attributes, data, address);
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (result != CUDA_SUCCESS || !Manages(guard) ||
      !ManagerAddressRange(guard, address, &base, &bytes)) {
    return result;
  }
  for (unsigned i = 0; i < count; ++i) CorrectAttribute(attributes[i], base, bytes, data[i]);
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
