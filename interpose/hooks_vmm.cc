// Virtual memory management of the job itself (NCCL, expandable segments): the driver serves it.
// Room is made for device memory and it is counted until the last handle and the last mapping are
// gone. Memory imported from another process is that process's to count.

#include <atomic>

#include "interpose/charge.h"

namespace tidemark::interpose {
namespace {

uint64_t NextMemory() {
  static std::atomic<uint64_t> next{0};
  return ++next;
}

// One reference to the memory less; it is uncounted with the last.
void DropMemory(const Guard& guard, uint64_t memory) {
  OutsideAllocation allocation;
  if (memory == 0 || !ForgetOutside(OutsideKind::kVmmMemory, memory, &allocation)) return;
  ManagerCountPassedThrough(guard, allocation.device, allocation.bytes, -1);
}

// One more handle for the memory mapped at `address`; its first one may be gone by now.
void RetainHandle(CUmemGenericAllocationHandle handle, CUdeviceptr address) {
  OutsideAllocation allocation;
  if (LookOutside(OutsideKind::kVmmHandle, handle, &allocation)) {
    RetainOutside(OutsideKind::kVmmHandle, handle);
  } else if (LookOutside(OutsideKind::kVmmMapping, address, &allocation) &&
             allocation.memory != 0) {
    RetainOutside(OutsideKind::kVmmMemory, allocation.memory);
    RememberOutside(OutsideKind::kVmmHandle, handle, allocation);
  }
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

// NCCL creates host memory (HOST_NUMA) from threads without a context: nothing here asks for one.
CUresult Hook_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* properties, unsigned long long flags) {
  auto call = [&] { return tidemark_real_cuMemCreate(handle, bytes, properties, flags); };
  Guard guard;
  if (!Manages(guard) || handle == nullptr || properties == nullptr) return call();
  if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return call();
  uint64_t memory = NextMemory();
  auto create = [&] {
    CUresult result = call();
    OutsideAllocation allocation{bytes, properties->location.id, memory};
    if (result == CUDA_SUCCESS) RememberOutside(OutsideKind::kVmmHandle, *handle, allocation);
    return result;
  };
  return Charged(guard, OutsideKind::kVmmMemory, properties->location.id, bytes, &memory, create);
}

// Forgotten before the call, because the value may be given out again by the time it returns.
CUresult Hook_cuMemRelease(CUmemGenericAllocationHandle handle) {
  Guard guard;
  OutsideAllocation allocation;
  if (!Manages(guard)) return tidemark_real_cuMemRelease(handle);
  bool last = ForgetOutside(OutsideKind::kVmmHandle, handle, &allocation);
  CUresult result = tidemark_real_cuMemRelease(handle);
  if (!last) return result;
  if (result == CUDA_SUCCESS) {
    DropMemory(guard, allocation.memory);
  } else {
    RememberOutside(OutsideKind::kVmmHandle, handle, allocation);
  }
  return result;
}

CUresult Hook_cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                       CUmemGenericAllocationHandle handle, unsigned long long flags) {
  Guard guard;
  CUresult result = tidemark_real_cuMemMap(address, bytes, offset, handle, flags);
  if (result != CUDA_SUCCESS || !Manages(guard)) return result;
  OutsideAllocation allocation;
  bool known = LookOutside(OutsideKind::kVmmHandle, handle, &allocation);
  if (known) RetainOutside(OutsideKind::kVmmMemory, allocation.memory);
  RememberOutside(OutsideKind::kVmmMapping, address,
                  {bytes, allocation.device, known ? allocation.memory : 0});
  return result;
}

// A range may hold several whole mappings. Addresses are the job's own to reuse, so forgetting them
// afterwards races with nobody.
CUresult Hook_cuMemUnmap(CUdeviceptr address, size_t bytes) {
  Guard guard;
  CUresult result = tidemark_real_cuMemUnmap(address, bytes);
  if (result != CUDA_SUCCESS || !Manages(guard)) return result;
  OutsideAllocation mapping;
  for (CUdeviceptr at = address; at < address + bytes; at += mapping.bytes) {
    if (!ForgetOutside(OutsideKind::kVmmMapping, at, &mapping) || mapping.bytes == 0) break;
    DropMemory(guard, mapping.memory);
  }
  return result;
}

CUresult Hook_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  Guard guard;
  CUresult result = tidemark_real_cuMemRetainAllocationHandle(handle, address);
  if (!Manages(guard) || result != CUDA_SUCCESS) return result;
  RetainHandle(*handle, reinterpret_cast<CUdeviceptr>(address));
  ManagerPin(guard, reinterpret_cast<CUdeviceptr>(address), 0, PinReason::kRegistered);
  return result;
}
