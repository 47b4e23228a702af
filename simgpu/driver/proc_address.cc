// cuGetProcAddress in both its versions.
// Thread rule: callable from any thread, as the driver API is.

#include <cuda.h>

#include "simgpu/driver/proc_table.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

constexpr cuuint64_t kFlags =
    CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

CUresult GetProc(const char* symbol, void** function, int version, cuuint64_t flags,
                 CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr || (flags & ~kFlags) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  ProcStatus found = kNoSuchSymbol;
  *function = FindProc(symbol, version, per_thread, &found);
  if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(found);
  // With a status word a missing symbol is no error of the call.
  return found == kFound || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult CUDAAPI cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                cuuint64_t flags,
                                                CUdriverProcAddressQueryResult* status) {
  SIMGPU_ENTER();
  return simgpu::GetProc(symbol, function, version, flags, status);
}

#undef cuGetProcAddress
SIMGPU_API CUresult CUDAAPI cuGetProcAddress(const char* symbol, void** function, int version,
                                             cuuint64_t flags) {
  SIMGPU_ENTER();
  return simgpu::GetProc(symbol, function, version, flags, nullptr);
}
