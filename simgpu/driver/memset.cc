// Memsets: the operation and the entry points of every width, linear and pitched.

#include <cuda.h>

#include <cstring>

#include "simgpu/driver/copy.h"
#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

void FillRow(unsigned char* row, const CUDA_MEMSET_NODE_PARAMS& memset) {
  if (memset.elementSize == 1) {
    ::memset(row, static_cast<int>(memset.value & 0xff), memset.width);
    return;
  }
  if (memset.elementSize == 2) {
    auto* cells = reinterpret_cast<uint16_t*>(row);
    for (size_t i = 0; i < memset.width; ++i) cells[i] = static_cast<uint16_t>(memset.value);
    return;
  }
  auto* cells = reinterpret_cast<uint32_t*>(row);
  for (size_t i = 0; i < memset.width; ++i) cells[i] = memset.value;
}

}  // namespace

CUresult CheckMemset(const CUDA_MEMSET_NODE_PARAMS& memset) {
  const unsigned size = memset.elementSize;
  if ((size != 1 && size != 2 && size != 4) || memset.dst == 0 || memset.dst % size != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (memset.height > 1 && (memset.pitch % size != 0 || memset.pitch < memset.width * size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!LooksLikeDeviceAddress(memset.dst) && PlaceOf(memset.dst).space == Space::kPageable) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

Operation MakeMemsetOperation(const char* name, const CUDA_MEMSET_NODE_PARAMS& memset) {
  Operation op;
  op.name = name;
  op.unit = Unit::kCopyOnDevice;
  const size_t row = memset.width * memset.elementSize;
  op.bytes = row * memset.height;
  const bool over_link = PlaceOf(memset.dst).host_backed;
  op.seconds = static_cast<double>(op.bytes) /
               (over_link ? GetConfig().d2h_bytes_per_second : GetConfig().memory_bytes_per_second);
  for (size_t y = 0; y < memset.height; ++y) {
    op.touches.push_back({memset.dst + y * memset.pitch, row, true});
  }
  op.run = [memset](Operation&) {
    for (size_t y = 0; y < memset.height; ++y) {
      FillRow(reinterpret_cast<unsigned char*>(memset.dst + y * memset.pitch), memset);
    }
    return CUDA_SUCCESS;
  };
  return op;
}

CUresult Memset(const CUDA_MEMSET_NODE_PARAMS& memset, CUstream handle, bool synchronous) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (memset.width == 0 || memset.height == 0) return CUDA_SUCCESS;
  if (const CUresult bad = CheckMemset(memset); bad != CUDA_SUCCESS) return bad;
  static constexpr const char* kNames[] = {"cuMemsetD8", "cuMemsetD16", "cuMemsetD32"};
  Operation op = MakeMemsetOperation(kNames[memset.elementSize / 2], memset);
  if (stream->capture != nullptr) {
    op.params = std::make_shared<NodeParams>();
    op.params->type = CU_GRAPH_NODE_TYPE_MEMSET;
    op.params->context = stream->context;
    op.params->memset = memset;
  }
  const CUresult result = Submit(handle, std::move(op));
  // Memsets are asynchronous towards the host except on pinned host memory.
  if (result != CUDA_SUCCESS || !synchronous || PlaceOf(memset.dst).space != Space::kPinned) {
    return result;
  }
  lock.unlock();
  return SynchronizeStream(handle);
}

CUresult MemsetRow(CUdeviceptr dst, unsigned value, unsigned size, size_t count, CUstream stream,
                   bool synchronous) {
  return Memset({dst, 0, value, size, count, 1}, stream, synchronous);
}

}  // namespace simgpu

SIMGPU_PTDS(cuMemsetD8_v2, MemsetRow, (CUdeviceptr dst, unsigned char value, size_t count),
            (dst, value, 1, count, stream, true))
SIMGPU_PTDS(cuMemsetD16_v2, MemsetRow, (CUdeviceptr dst, unsigned short value, size_t count),
            (dst, value, 2, count, stream, true))
SIMGPU_PTDS(cuMemsetD32_v2, MemsetRow, (CUdeviceptr dst, unsigned value, size_t count),
            (dst, value, 4, count, stream, true))
SIMGPU_PTSZ(cuMemsetD8Async, MemsetRow,
            (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream),
            (dst, value, 1, count, stream, false))
SIMGPU_PTSZ(cuMemsetD16Async, MemsetRow,
            (CUdeviceptr dst, unsigned short value, size_t count, CUstream stream),
            (dst, value, 2, count, stream, false))
SIMGPU_PTSZ(cuMemsetD32Async, MemsetRow,
            (CUdeviceptr dst, unsigned value, size_t count, CUstream stream),
            (dst, value, 4, count, stream, false))
SIMGPU_PTDS(cuMemsetD2D8_v2, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height),
            ({dst, pitch, value, 1, width, height}, stream, true))
SIMGPU_PTDS(cuMemsetD2D16_v2, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height),
            ({dst, pitch, value, 2, width, height}, stream, true))
SIMGPU_PTDS(cuMemsetD2D32_v2, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height),
            ({dst, pitch, value, 4, width, height}, stream, true))
SIMGPU_PTSZ(cuMemsetD2D8Async, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
             CUstream stream),
            ({dst, pitch, value, 1, width, height}, stream, false))
SIMGPU_PTSZ(cuMemsetD2D16Async, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
             CUstream stream),
            ({dst, pitch, value, 2, width, height}, stream, false))
SIMGPU_PTSZ(cuMemsetD2D32Async, Memset,
            (CUdeviceptr dst, size_t pitch, unsigned value, size_t width, size_t height,
             CUstream stream),
            ({dst, pitch, value, 4, width, height}, stream, false))
