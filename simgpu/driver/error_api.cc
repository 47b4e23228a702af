// Names and sentences of error codes.
// Thread rule: none needed; the tables are constant.

#include <cuda.h>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

struct Known {
  int code;
  const char* name;
  const char* sentence;
};

#define ERROR(code, name, sentence) {code, name, sentence},
constexpr Known kErrors[] = {
#include "error_table.inc"
};
#undef ERROR

// What programs print and tests compare: the short texts of the commonest codes.
constexpr Known kShort[] = {
    {CUDA_SUCCESS, "", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "", "initialization error"},
    {CUDA_ERROR_DEINITIALIZED, "", "driver shutting down"},
    {CUDA_ERROR_NO_DEVICE, "", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "", "operation not supported"},
    {CUDA_ERROR_UNKNOWN, "", "unknown error"},
};

const Known* Find(CUresult code) {
  for (const Known& known : kErrors) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

const char* Sentence(CUresult code) {
  for (const Known& known : kShort) {
    if (known.code == code) return known.sentence;
  }
  return Find(code)->sentence;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult CUDAAPI cuGetErrorName(CUresult code, const char** text) {
  SIMGPU_ENTER();
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const simgpu::Known* known = simgpu::Find(code);
  *text = known != nullptr ? known->name : nullptr;
  return known != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIMGPU_API CUresult CUDAAPI cuGetErrorString(CUresult code, const char** text) {
  SIMGPU_ENTER();
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool known = simgpu::Find(code) != nullptr;
  *text = known ? simgpu::Sentence(code) : nullptr;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
