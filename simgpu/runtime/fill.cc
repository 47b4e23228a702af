// The memset families. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

unsigned char Byte(int value) { return static_cast<unsigned char>(value); }

int Fill(const Driver& d, void* target, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  return d.cuMemsetD8(Address(target), Byte(value), bytes);
}

int FillAsync(const Driver& d, void* target, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return d.cuMemsetD8Async(Address(target), Byte(value), bytes, stream);
}

struct Plane {
  void* target;
  size_t pitch;
  size_t width;
  size_t height;
};

int FillPlane(const Driver& d, const Plane& plane, int value) {
  if (plane.width == 0 || plane.height == 0) return cudaSuccess;
  return d.cuMemsetD2D8(Address(plane.target), plane.pitch, Byte(value), plane.width, plane.height);
}

int FillPlaneAsync(const Driver& d, const Plane& plane, int value, cudaStream_t stream) {
  if (plane.width == 0 || plane.height == 0) return cudaSuccess;
  return d.cuMemsetD2D8Async(Address(plane.target), plane.pitch, Byte(value), plane.width,
                             plane.height, stream);
}

Plane Slice(const cudaPitchedPtr& pitched, const cudaExtent& extent, size_t z) {
  char* base = static_cast<char*>(pitched.ptr) + z * pitched.pitch * pitched.ysize;
  return {base, pitched.pitch, extent.width, extent.height};
}

// One plane when the slices follow each other without a gap, else one for each slice.
template <typename FillOne>
int FillBox(const cudaPitchedPtr& pitched, const cudaExtent& extent, FillOne fill) {
  if (extent.depth == 0) return cudaSuccess;
  if (extent.height == pitched.ysize) {
    return fill(Plane{pitched.ptr, pitched.pitch, extent.width, extent.height * extent.depth});
  }
  for (size_t z = 0; z < extent.depth; ++z) {
    if (int code = fill(Slice(pitched, extent, z))) return code;
  }
  return cudaSuccess;
}

int FillBox(const Driver& d, const cudaPitchedPtr& pitched, int value, const cudaExtent& extent) {
  return FillBox(pitched, extent, [&](const Plane& plane) { return FillPlane(d, plane, value); });
}

int FillBoxAsync(const Driver& d, const cudaPitchedPtr& pitched, int value,
                 const cudaExtent& extent, cudaStream_t stream) {
  return FillBox(pitched, extent,
                 [&](const Plane& plane) { return FillPlaneAsync(d, plane, value, stream); });
}

}  // namespace

SIMGPU_CALL_TWINS(cudaMemset, _ptds, (void* target, int value, size_t bytes),
                  Fill(d, target, value, bytes))
SIMGPU_CALL_TWINS(cudaMemsetAsync, _ptsz,
                  (void* target, int value, size_t bytes, cudaStream_t stream),
                  FillAsync(d, target, value, bytes, stream))
SIMGPU_CALL_TWINS(cudaMemset2D, _ptds,
                  (void* target, size_t pitch, int value, size_t width, size_t height),
                  FillPlane(d, {target, pitch, width, height}, value))
SIMGPU_CALL_TWINS(cudaMemset2DAsync, _ptsz,
                  (void* target, size_t pitch, int value, size_t width, size_t height,
                   cudaStream_t stream),
                  FillPlaneAsync(d, {target, pitch, width, height}, value, stream))
SIMGPU_CALL_TWINS(cudaMemset3D, _ptds, (cudaPitchedPtr pitched, int value, cudaExtent extent),
                  FillBox(d, pitched, value, extent))
SIMGPU_CALL_TWINS(cudaMemset3DAsync, _ptsz,
                  (cudaPitchedPtr pitched, int value, cudaExtent extent, cudaStream_t stream),
                  FillBoxAsync(d, pitched, value, extent, stream))

}  // namespace simgpu::runtime
