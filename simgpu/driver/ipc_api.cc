// Legacy IPC of plain memory: cuIpcGetMemHandle, cuIpcOpenMemHandle, cuIpcCloseMemHandle. The
// handle names memory of the node; opening it makes this process one more holder. VMM memory is
// refused, as on a GPU. Thread rule: every entry point takes the driver lock.

#include <cuda.h>
#include <unistd.h>

#include <cstring>

#include "simgpu/driver/alloc.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/node.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

struct Ticket {
  uint64_t magic;
  uint64_t node;
  uint64_t memory;
  uint64_t bytes;
  int64_t pid;
  int32_t device;
  int32_t reserved;
};
static_assert(sizeof(Ticket) <= sizeof(CUipcMemHandle));
constexpr uint64_t kMagic = 0x31435049474d4953;  // "SIMGIPC1"

// What this context has open of `memory` already, or null.
Range* OpenOf(uint64_t memory, CUcontext context) {
  Range* open = nullptr;
  ForEachRange([&](Range& range) {
    const bool same =
        range.kind == Kind::kIpc && range.owner == context && range.own->memory.id == memory;
    if (same) open = &range;
  });
  return open;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr dptr) {
  SIMGPU_ENTER();
  Lock hold(DriverLock());
  const Range* range = FindRange(dptr);
  if (handle == nullptr || range == nullptr || range->kind != Kind::kPlain)
    return CUDA_ERROR_INVALID_VALUE;
  const Ticket ticket = {
      kMagic, NodeIdentity(), range->own->memory.id, range->bytes, getpid(), range->device, 0};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr* pdptr, CUipcMemHandle handle,
                                               unsigned flags) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  Ticket ticket;
  std::memcpy(&ticket, &handle, sizeof ticket);
  if (pdptr == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || ticket.magic != kMagic ||
      ticket.node != NodeIdentity()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (ticket.pid == getpid()) return CUDA_ERROR_INVALID_CONTEXT;
  if (Range* open = OpenOf(ticket.memory, context)) {
    ++open->opens;
    *pdptr = open->base;
    return CUDA_SUCCESS;
  }
  std::unique_ptr<Physical> physical;
  if (CUresult bad = AdoptPhysical(ticket.memory, &physical); bad != CUDA_SUCCESS) return bad;
  if (ticket.bytes > physical->memory.bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  Range* range = PlaceRange(Kind::kIpc, std::move(physical), ticket.bytes, &result);
  if (range == nullptr) return result;
  range->owner = context;
  range->opens = 1;
  *pdptr = range->base;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuIpcCloseMemHandle(CUdeviceptr dptr) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (CUresult bad = SynchronizeDevice(context->device); bad != CUDA_SUCCESS) return bad;
  Lock hold(DriverLock());
  Range* range = FindRange(dptr);
  if (range == nullptr || range->base != dptr || range->kind != Kind::kIpc)
    return CUDA_ERROR_INVALID_VALUE;
  if (--range->opens > 0) return CUDA_SUCCESS;
  FreeRange(range, "closed by cuIpcCloseMemHandle");
  return CUDA_SUCCESS;
}
