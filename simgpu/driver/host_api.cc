// Pinned host memory: cuMemHostAlloc, cuMemAllocHost, cuMemHostRegister and their inverses. It is
// ordinary memory of the process that the address space knows; its device address is its host
// address (unified addressing). Thread rule: every entry point takes the driver lock.

#include <cuda.h>
#include <sys/mman.h>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

constexpr unsigned kAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
// Pinning costs about 0.1 s a GiB on servers.
double PinSeconds(size_t bytes) { return 20e-6 + static_cast<double>(bytes) * 1e-10; }

CUresult Allocate(void** at, size_t bytes, unsigned flags) {
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = ForbidDuringCapture(); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  if (at == nullptr || bytes == 0 || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t span = (bytes + 4095) / 4096 * 4096;
  void* memory = mmap(nullptr, span, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Range range;
  range.kind = Kind::kPinned;
  range.base = reinterpret_cast<CUdeviceptr>(memory);
  range.bytes = bytes;
  range.span_bytes = span;
  range.owner = context;
  range.flags = flags;
  AddRange(std::move(range));
  ChargeHost(PinSeconds(bytes));
  *at = memory;
  return CUDA_SUCCESS;
}

Range* HostRange(const void* at, Kind kind) {
  Range* range = FindRange(reinterpret_cast<CUdeviceptr>(at));
  return range != nullptr && range->kind == kind ? range : nullptr;
}

Range* AnyHostRange(const void* at) {
  Range* range = HostRange(at, Kind::kPinned);
  return range != nullptr ? range : HostRange(at, Kind::kRegistered);
}

// Ends a range that starts at `at`, once the device no longer uses it.
CUresult End(const void* at, Kind kind, const char* verb) {
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = SynchronizeDevice(context->device); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  Range* range = HostRange(at, kind);
  if (range == nullptr || range->base != reinterpret_cast<CUdeviceptr>(at)) {
    return kind == Kind::kPinned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  ForgetRange(range->base, range->span_bytes);
  if (kind == Kind::kPinned) GiveAddresses(range->base, range->span_bytes);
  RemoveRange(range->base, verb);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuMemHostAlloc(void** pp, size_t bytesize, unsigned flags) {
  SIMGPU_ENTER();
  return Allocate(pp, bytesize, flags);
}

SIMGPU_API CUresult CUDAAPI cuMemAllocHost(void** pp, size_t bytesize) {
  SIMGPU_ENTER();
  return Allocate(pp, bytesize, 0);
}

SIMGPU_API CUresult CUDAAPI cuMemFreeHost(void* p) {
  SIMGPU_ENTER();
  return p == nullptr ? CUDA_ERROR_INVALID_VALUE : End(p, Kind::kPinned, "freed by cuMemFreeHost");
}

SIMGPU_API CUresult CUDAAPI cuMemHostRegister(void* p, size_t bytesize, unsigned flags) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = ForbidDuringCapture(); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  const auto base = reinterpret_cast<CUdeviceptr>(p);
  if (p == nullptr || bytesize == 0 || (flags & ~kRegisterFlags) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const Range* taken = FindFrom(base);
  if (taken != nullptr && taken->base < base + bytesize) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  if (FindReservation(base) != nullptr) return CUDA_ERROR_INVALID_VALUE;
  Range range;
  range.kind = Kind::kRegistered;
  range.base = base;
  range.bytes = bytesize;
  range.owner = context;
  range.flags = flags;
  AddRange(std::move(range));
  ChargeHost(PinSeconds(bytesize));
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemHostUnregister(void* p) {
  SIMGPU_ENTER();
  return p == nullptr ? CUDA_ERROR_INVALID_VALUE
                      : End(p, Kind::kRegistered, "unregistered by cuMemHostUnregister");
}

SIMGPU_API CUresult CUDAAPI cuMemHostGetDevicePointer(CUdeviceptr* pdptr, void* p, unsigned flags) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  if (pdptr == nullptr || flags != 0 || AnyHostRange(p) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemHostGetFlags(unsigned* flags, void* p) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = HostRange(p, Kind::kPinned);
  if (flags == nullptr || range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags;
  return CUDA_SUCCESS;
}
