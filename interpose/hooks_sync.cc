// Host waits of the job. Nothing is done but to look at the outcome: an error that ends a context
// is known here first, and from then on the context's requests must fail as they would without us.

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

// Errors after which a context is of no more use; the driver repeats them at every call.
bool EndsContext(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return true;
    default:
      return false;
  }
}

CUresult Looked(CUresult result) {
  if (!EndsContext(result)) return result;
  Guard guard;
  if (Manages(guard)) ManagerContextIsBroken(guard);
  return result;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuCtxSynchronize() { return Looked(tidemark_real_cuCtxSynchronize()); }
CUresult Hook_cuCtxSynchronize_v2(CUcontext context) {
  return Looked(tidemark_real_cuCtxSynchronize_v2(context));
}
CUresult Hook_cuStreamSynchronize(CUstream stream) {
  return Looked(tidemark_real_cuStreamSynchronize(stream));
}
CUresult Hook_cuStreamSynchronize_ptsz(CUstream stream) {
  return Looked(tidemark_real_cuStreamSynchronize_ptsz(stream));
}
CUresult Hook_cuEventSynchronize(CUevent event) {
  return Looked(tidemark_real_cuEventSynchronize(event));
}
