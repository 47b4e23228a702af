// The per-thread-default-stream forms of the stream-ordered allocation calls.
// Thread rule: that of the calls they stand for.

#include <cuda.h>

#include "simgpu/driver/state.h"

namespace {
CUstream PerThread(CUstream stream) { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }
}  // namespace

SIMGPU_API CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr* dptr, size_t bytes, CUstream stream) {
  return cuMemAllocAsync(dptr, bytes, PerThread(stream));
}

SIMGPU_API CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* dptr, size_t bytes,
                                                         CUmemoryPool pool, CUstream stream) {
  return cuMemAllocFromPoolAsync(dptr, bytes, pool, PerThread(stream));
}

SIMGPU_API CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr dptr, CUstream stream) {
  return cuMemFreeAsync(dptr, PerThread(stream));
}
