// Memory that the driver serves and the job's budget pays for: the bodies that hooks_memory.cc,
// hooks_vmm.cc, hooks_array.cc and hooks_host.cc share. Included by hooks_*.cc only.

#ifndef TIDEMARK_INTERPOSE_CHARGE_H_
#define TIDEMARK_INTERPOSE_CHARGE_H_

#include "interpose/hook_gate.h"
#include "interpose/outside.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {

inline constexpr CUdevice kNoDevice = -1;

inline CUdevice CurrentDevice() {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUdevice device = kNoDevice;
  if (driver == nullptr || driver->cuCtxGetDevice(&device) != CUDA_SUCCESS) return kNoDevice;
  return device;
}

// Allocations inside a capture become nodes of the graph: nothing is allocated yet, and making room
// would do what a capture forbids.
inline bool IsCapturing(CUstream stream) {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver != nullptr && driver->cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

inline void Count(const Guard& guard, OutsideKind kind, uint64_t name,
                  OutsideAllocation allocation) {
  RememberOutside(kind, name, allocation);
  ManagerCountPassedThrough(guard, allocation.device, allocation.bytes, +1);
}

// Lets the driver allocate and counts `*name` (an address or a handle). Room was made, so if the
// driver lacks memory it is because we hold what it wants: it gets that, and a second try.
template <typename Name, typename Call>
CUresult Counted(const Guard& guard, OutsideKind kind, CUdevice device, uint64_t bytes, Name* name,
                 const Call& call) {
  CUresult result = call();
  if (result == CUDA_ERROR_OUT_OF_MEMORY && ManagerGiveBack(guard, device, bytes)) result = call();
  if (result == CUDA_SUCCESS) Count(guard, kind, (uint64_t)*name, {bytes, device});
  return result;
}

// The same for memory that the budget must have room for.
template <typename Name, typename Call>
CUresult Charged(const Guard& guard, OutsideKind kind, CUdevice device, uint64_t bytes, Name* name,
                 const Call& call) {
  if (!ManagerMakeRoom(guard, device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  return Counted(guard, kind, device, bytes, name, call);
}

// An allocation that becomes a node of a graph: memory comes with the graph's launch, and is
// counted then.
template <typename Call>
CUresult IntoGraph(const Guard& guard, const Call& call) {
  ManagerGraphAllocates(guard);
  return call();
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

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_CHARGE_H_
