// Pinned host memory of the job: the driver serves it and it is counted apart from device memory.
// Rule: never charged, and no room is made: it is the job's own as any memory of its process is,
// and refusing it would break a job that ran before.

#include "interpose/charge.h"

namespace tidemark::interpose {
namespace {

uint64_t NameOf(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

template <typename Call>
CUresult Allocated(void** memory, size_t bytes, const Call& call) {
  CUresult result = call();
  Guard guard;
  if (result != CUDA_SUCCESS || !Manages(guard)) return result;
  RememberOutside(OutsideKind::kHost, NameOf(*memory), {bytes, CurrentDevice()});
  ManagerCountHost(guard, CurrentDevice(), bytes, +1);
  return result;
}

template <typename Call>
CUresult Ended(void* memory, const Call& call) {
  Guard guard;
  OutsideAllocation allocation;
  bool last = Manages(guard) && ForgetOutside(OutsideKind::kHost, NameOf(memory), &allocation);
  CUresult result = call();
  if (!last) return result;
  if (result == CUDA_SUCCESS) {
    ManagerCountHost(guard, allocation.device, allocation.bytes, -1);
  } else {
    RememberOutside(OutsideKind::kHost, NameOf(memory), allocation);
  }
  return result;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  return Allocated(memory, bytes,
                   [&] { return tidemark_real_cuMemHostAlloc(memory, bytes, flags); });
}
CUresult Hook_cuMemAllocHost_v2(void** memory, size_t bytes) {
  return Allocated(memory, bytes, [&] { return tidemark_real_cuMemAllocHost_v2(memory, bytes); });
}
CUresult Hook_cuMemFreeHost(void* memory) {
  return Ended(memory, [&] { return tidemark_real_cuMemFreeHost(memory); });
}
CUresult Hook_cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  return Allocated(&memory, bytes,
                   [&] { return tidemark_real_cuMemHostRegister_v2(memory, bytes, flags); });
}
CUresult Hook_cuMemHostUnregister(void* memory) {
  return Ended(memory, [&] { return tidemark_real_cuMemHostUnregister(memory); });
}
