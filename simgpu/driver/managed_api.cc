// Hints about managed memory: cuMemAdvise, cuMemPrefetchAsync. It is one memory for host and device
// here, so advice changes nothing and a prefetch only takes its time on the link.
// Thread rule: every entry point takes the driver lock.

#include <cuda.h>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

CUresult CheckManaged(CUdeviceptr base, size_t bytes) {
  Lock hold(DriverLock());
  const Range* range = FindRange(base);
  const bool inside = range != nullptr && range->kind == Kind::kManaged && bytes != 0 &&
                      base - range->base < range->bytes &&
                      bytes <= range->bytes - (base - range->base);
  return inside ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckLocation(const CUmemLocation& location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return IsDevice(location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool NeedsLocation(CUmem_advise advice) {
  return advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION ||
         advice == CU_MEM_ADVISE_SET_ACCESSED_BY || advice == CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

bool IsAdvice(CUmem_advise advice) {
  return advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY;
}

CUresult Prefetch(CUdeviceptr base, size_t bytes, const CUmemLocation& location, CUstream stream) {
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = CheckManaged(base, bytes); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = CheckLocation(location); bad != CUDA_SUCCESS) return bad;
  const bool to_device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  const double rate =
      to_device ? GetConfig().h2d_bytes_per_second : GetConfig().d2h_bytes_per_second;
  Operation op;
  op.name = "cuMemPrefetchAsync_v2";
  op.unit = to_device ? Unit::kCopyToDevice : Unit::kCopyToHost;
  op.seconds = static_cast<double>(bytes) / rate;
  return Submit(stream, std::move(op));
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuMemAdvise(CUdeviceptr base, size_t bytes, CUmem_advise advice,
                                        CUmemLocation location) {
  SIMGPU_ENTER();
  if (!IsAdvice(advice)) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = CheckManaged(base, bytes); bad != CUDA_SUCCESS) return bad;
  return NeedsLocation(advice) ? CheckLocation(location) : CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr base, size_t bytes,
                                                  CUmemLocation location, unsigned flags,
                                                  CUstream stream) {
  SIMGPU_ENTER();
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE : Prefetch(base, bytes, location, stream);
}

SIMGPU_API CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr base, size_t bytes,
                                                       CUmemLocation location, unsigned flags,
                                                       CUstream stream) {
  SIMGPU_ENTER();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return Prefetch(base, bytes, location, stream == nullptr ? CU_STREAM_PER_THREAD : stream);
}
