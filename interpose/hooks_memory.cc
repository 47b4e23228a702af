// Allocation of linear memory: what the arena serves, and what the driver serves and is counted.
//
// Rule: plain, pitched and stream-ordered memory is the arena's; memory of a pool of the job's own
// is the driver's, charged to the budget. Managed memory is the driver's too and charged in full,
// wherever its pages are; under a budget below the device what exceeds it is out of memory, without
// one the driver decides, which lets it exceed the device.

#include "interpose/charge.h"
#include "interpose/outcome.h"

namespace tidemark::interpose {
namespace {

template <typename Real>
CUresult AllocAsync(Real real, CUstream stream, CUdeviceptr* address, size_t bytes,
                    CUstream given) {
  auto call = [&] { return real(address, bytes, given); };
  Guard guard;
  if (!Manages(guard) || address == nullptr || bytes == 0) return call();
  CUresult result;
  if (TakeKnownOutcome(&result)) return result;
  if (ManagerAllocAsync(guard, address, bytes, stream, &result)) return result;
  if (IsCapturing(stream)) return IntoGraph(guard, call);
  return Charged(guard, OutsideKind::kAddress, CurrentDevice(), bytes, address, call);
}

template <typename Real>
CUresult AllocFromPoolAsync(Real real, CUstream stream, CUdeviceptr* address, size_t bytes,
                            CUmemoryPool pool, CUstream given) {
  auto call = [&] { return real(address, bytes, pool, given); };
  Guard guard;
  bool odd = address == nullptr || bytes == 0;
  if (!Manages(guard) || odd) return call();
  if (IsCapturing(stream)) return IntoGraph(guard, call);
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
  auto call = [&] { return tidemark_real_cuMemAllocManaged(address, bytes, flags); };
  Guard guard;
  if (!Manages(guard) || address == nullptr || bytes == 0) return call();
  const CUdevice device = CurrentDevice();
  if (!ManagerMakeRoom(guard, device, bytes) && ManagerHasLimit(guard, device)) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return Counted(guard, OutsideKind::kAddress, device, bytes, address, call);
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
