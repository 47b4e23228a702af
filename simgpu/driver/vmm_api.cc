// Virtual memory management: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess and their
// inverses, with the rules that the driver API documents. Handles are numbers that are never used
// twice, so that a double release is an error and not somebody else's memory.
// Thread rule: every entry point takes the driver lock.

#include <cuda.h>

#include <map>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/guard.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

// Microseconds published for an A100; see docs of the allocators that measured them.
constexpr double kCreateSeconds = 193e-6;
constexpr double kMapSeconds = 1.5e-6;
constexpr double kAccessSeconds = 36e-6;
constexpr double kUnmapSeconds = 26e-6;
constexpr double kReserveSeconds = 19e-6;

std::map<CUmemGenericAllocationHandle, std::unique_ptr<Physical>>& Handles() {
  static auto* handles = new std::map<CUmemGenericAllocationHandle, std::unique_ptr<Physical>>;
  return *handles;
}

CUmemGenericAllocationHandle NewHandle() {
  static CUmemGenericAllocationHandle last = 0x51000000;
  return ++last;
}

// The memory of a handle that the program still holds, or null.
Physical* Held(CUmemGenericAllocationHandle handle) {
  auto found = Handles().find(handle);
  return found == Handles().end() || found->second->handle_refs == 0 ? nullptr
                                                                     : found->second.get();
}

void DropIfUnused(Physical* physical) {
  if (physical->handle_refs > 0 || physical->mappings > 0) return;
  Handles().erase(physical->handle);
}

bool IsMultiple(size_t value) { return value != 0 && value % kGranularity == 0; }

bool IsHost(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

// Device number that a location names, kHostMemory for the host, or -2 if it is no place of this
// node.
int LocationDevice(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return IsDevice(location.id) ? location.id : -2;
  if (location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA && location.id != 0) return -2;
  return IsHost(location.type) ? kHostMemory : -2;
}

CUresult CheckProp(const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (LocationDevice(prop->location) == -2) return CUDA_ERROR_INVALID_DEVICE;
  const auto types = static_cast<unsigned>(prop->requestedHandleTypes);
  if (types & ~static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUmemGenericAllocationHandle Keep(std::unique_ptr<Physical> physical) {
  const CUmemGenericAllocationHandle handle = NewHandle();
  physical->handle_refs = 1;
  physical->handle = handle;
  Handles()[handle] = std::move(physical);
  return handle;
}

// Calls `visit(range)` for each mapping of [base, base + bytes) if they cover it without a gap and
// none sticks out; else CUDA_ERROR_INVALID_VALUE before any visit.
template <typename Visit>
CUresult ForWholeMappings(CUdeviceptr base, size_t bytes, Visit visit) {
  if (base % kGranularity != 0 || !IsMultiple(bytes)) return CUDA_ERROR_INVALID_VALUE;
  const CUdeviceptr end = base + bytes;
  for (CUdeviceptr at = base; at < end;) {
    const Range* range = FindRange(at);
    if (range == nullptr || range->kind != Kind::kMapping || range->base != at) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    at += range->bytes;
    if (at > end) return CUDA_ERROR_INVALID_VALUE;
  }
  for (CUdeviceptr at = base; at < end;) {
    Range* range = FindRange(at);
    const size_t step = range->bytes;
    if (CUresult bad = visit(range); bad != CUDA_SUCCESS) return bad;
    at += step;
  }
  return CUDA_SUCCESS;
}

CUresult Unmap(Range* range) {
  ForgetRange(range->base, range->bytes);
  if (!UnmapBytes(range->base, range->bytes)) return CUDA_ERROR_OPERATING_SYSTEM;
  Physical* physical = range->physical;
  RemoveRange(range->base, "unmapped by cuMemUnmap");
  --physical->mappings;
  DropIfUnused(physical);
  ChargeHost(kUnmapSeconds);
  return CUDA_SUCCESS;
}

CUresult CheckAccess(const CUmemAccessDesc* desc, size_t count) {
  if (desc == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (LocationDevice(desc[i].location) == -2) return CUDA_ERROR_INVALID_DEVICE;
    const auto flags = desc[i].flags;
    const bool known = flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                       flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                       flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    if (!known) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult Grant(Range* range, const CUmemAccessDesc* desc, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const int device = LocationDevice(desc[i].location);
    // The host reaches memory through a mapping only if the memory is the host's.
    if (device == kHostMemory && !range->physical->host_backed) return CUDA_ERROR_INVALID_DEVICE;
    range->access[device] = desc[i].flags;
    if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) range->access.erase(device);
  }
  ChargeHost(kAccessSeconds);
  return ApplyProtection(*range) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuMemGetAllocationGranularity(size_t* granularity,
                                                          const CUmemAllocationProp* prop,
                                                          CUmemAllocationGranularity_flags option) {
  SIMGPU_ENTER();
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
      option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CUresult bad = CheckProp(prop); bad != CUDA_SUCCESS) return bad;
  *granularity = kGranularity;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemAddressReserve(CUdeviceptr* ptr, size_t size, size_t alignment,
                                                CUdeviceptr addr, unsigned long long flags) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (ptr == nullptr || flags != 0 || !IsMultiple(size)) return CUDA_ERROR_INVALID_VALUE;
  if ((alignment & (alignment - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t aligned = alignment < kGranularity ? kGranularity : alignment;
  const CUdeviceptr base = TakeAddresses(size, aligned, addr);
  if (base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  Reservations()[base] = {base, size};
  ChargeHost(kReserveSeconds);
  *ptr = base;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  auto found = Reservations().find(ptr);
  if (found == Reservations().end() || found->second.bytes != size) return CUDA_ERROR_INVALID_VALUE;
  const Range* inside = FindFrom(ptr);
  if (inside != nullptr && inside->base < ptr + size) return CUDA_ERROR_INVALID_VALUE;
  Reservations().erase(found);
  GiveAddresses(ptr, size);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                                        const CUmemAllocationProp* prop, unsigned long long flags) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (handle == nullptr || flags != 0 || !IsMultiple(size)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = CheckProp(prop); bad != CUDA_SUCCESS) return bad;
  std::unique_ptr<Physical> physical;
  const CUresult result = NewPhysical(LocationDevice(prop->location), size, &physical);
  ChargeHost(kCreateSeconds);
  if (result != CUDA_SUCCESS) return result;
  physical->prop = *prop;
  *handle = Keep(std::move(physical));
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemRelease(CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  Physical* physical = Held(handle);
  if (physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  --physical->handle_refs;
  DropIfUnused(physical);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                                     CUmemGenericAllocationHandle handle,
                                     unsigned long long flags) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  Physical* physical = Held(handle);
  if (physical == nullptr || flags != 0 || offset != 0) return CUDA_ERROR_INVALID_VALUE;
  if (ptr % kGranularity != 0 || size != physical->memory.bytes) return CUDA_ERROR_INVALID_VALUE;
  const Reservation* reservation = FindReservation(ptr);
  if (reservation == nullptr || ptr + size > reservation->base + reservation->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Range* taken = FindFrom(ptr);
  if (taken != nullptr && taken->base < ptr + size) return CUDA_ERROR_INVALID_VALUE;
  Range range;
  range.kind = Kind::kMapping;
  range.base = ptr;
  range.bytes = size;
  range.device = physical->memory.device;
  range.physical = physical;
  Range* added = AddRange(std::move(range));
  if (!MapBytes(*added, *physical)) {
    RemoveRange(ptr, "could not be mapped");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  ++physical->mappings;
  ChargeHost(kMapSeconds);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemUnmap(CUdeviceptr ptr, size_t size) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  return ForWholeMappings(ptr, size, [](Range* range) { return Unmap(range); });
}

SIMGPU_API CUresult CUDAAPI cuMemSetAccess(CUdeviceptr ptr, size_t size,
                                           const CUmemAccessDesc* desc, size_t count) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (CUresult bad = CheckAccess(desc, count); bad != CUDA_SUCCESS) return bad;
  return ForWholeMappings(ptr, size, [&](Range* range) { return Grant(range, desc, count); });
}

SIMGPU_API CUresult CUDAAPI cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                           CUdeviceptr ptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = FindRange(ptr);
  if (flags == nullptr || location == nullptr || range == nullptr ||
      range->kind != Kind::kMapping) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int device = LocationDevice(*location);
  if (device == -2) return CUDA_ERROR_INVALID_DEVICE;
  auto found = range->access.find(device);
  *flags = found == range->access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE : found->second;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                                        void* addr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = FindRange(reinterpret_cast<CUdeviceptr>(addr));
  if (handle == nullptr || range == nullptr || range->kind != Kind::kMapping) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  ++range->physical->handle_refs;
  *handle = range->physical->handle;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemGetAllocationPropertiesFromHandle(
    CUmemAllocationProp* prop, CUmemGenericAllocationHandle handle) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Physical* physical = Held(handle);
  if (prop == nullptr || physical == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *prop = physical->prop;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemExportToShareableHandle(void* shareable,
                                                         CUmemGenericAllocationHandle handle,
                                                         CUmemAllocationHandleType type,
                                                         unsigned long long flags) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Physical* physical = Held(handle);
  if (shareable == nullptr || physical == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if ((physical->prop.requestedHandleTypes & type) == 0) return CUDA_ERROR_INVALID_VALUE;
  // Whether an importer may export again is not documented, so it is refused.
  if (physical->imported) return CUDA_ERROR_NOT_PERMITTED;
  const int fd = OpenNodeMemory(physical->memory.id, true);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(shareable) = fd;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                           void* os_handle,
                                                           CUmemAllocationHandleType type) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  std::unique_ptr<Physical> physical;
  const auto fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  if (CUresult bad = AdoptPhysical(fd, &physical); bad != CUDA_SUCCESS) return bad;
  physical->imported = true;
  physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  physical->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  physical->prop.location.type =
      physical->host_backed ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;
  physical->prop.location.id = physical->host_backed ? 0 : physical->memory.device;
  *handle = Keep(std::move(physical));
  return CUDA_SUCCESS;
}
