// Copies and memsets as operations: what they touch, which engine carries them, when the host
// waits.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_COPY_H_
#define SIMGPU_DRIVER_COPY_H_

#include <cuda.h>

#include "simgpu/driver/engine.h"

namespace simgpu {

// A copy of depth x height rows of `width` bytes between two linear memories (arrays are not
// supported).
struct CopyShape {
  CUdeviceptr dst = 0;
  CUdeviceptr src = 0;
  size_t width = 0;
  size_t height = 1;
  size_t depth = 1;
  size_t dst_pitch = 0;
  size_t src_pitch = 0;
  size_t dst_slice = 0;  // bytes from one depth to the next
  size_t src_slice = 0;

  size_t Bytes() const { return width * height * depth; }
};

// Which memories the caller says the two sides are; kUnified leaves it to the addresses.
enum class Side { kHost, kDevice, kUnified };

CUresult ShapeOf(const CUDA_MEMCPY3D& copy, CopyShape* shape, Side* dst, Side* src);
// INVALID_VALUE when a side that is said to be device memory is the host's.
CUresult CheckSides(const CopyShape& shape, Side dst, Side src);

// `staged`: the source is pageable and its bytes are taken now.
Operation MakeCopyOperation(const char* name, const CopyShape& shape, bool staged);
Operation MakeMemsetOperation(const char* name, const CUDA_MEMSET_NODE_PARAMS& memset);
CUresult CheckMemset(const CUDA_MEMSET_NODE_PARAMS& memset);

// Submits with the host synchrony that CUDA documents for the pair of memories.
CUresult SubmitCopy(const char* name, const CopyShape& shape, CUstream stream, bool synchronous);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_COPY_H_
