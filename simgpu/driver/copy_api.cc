// Entry points of linear and peer copies. Copies of CUDA arrays and the superseded forms with
// 32-bit addresses are not here: they answer NOT_SUPPORTED.

#include <cuda.h>

#include "simgpu/driver/copy.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

CUresult Linear(const char* name, CUdeviceptr dst, Side dst_side, CUdeviceptr src, Side src_side,
                size_t bytes, CUstream stream, bool synchronous) {
  CopyShape shape;
  shape.dst = dst;
  shape.src = src;
  shape.width = bytes;
  shape.dst_pitch = shape.src_pitch = shape.dst_slice = shape.src_slice = bytes;
  if (bytes != 0) {
    if (const CUresult bad = CheckSides(shape, dst_side, src_side); bad != CUDA_SUCCESS) return bad;
  }
  return SubmitCopy(name, shape, stream, synchronous);
}

CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUresult Shaped(const char* name, const CUDA_MEMCPY3D& copy, CUstream stream, bool synchronous) {
  CopyShape shape;
  Side dst = Side::kUnified;
  Side src = Side::kUnified;
  if (const CUresult bad = ShapeOf(copy, &shape, &dst, &src); bad != CUDA_SUCCESS) return bad;
  if (shape.Bytes() != 0) {
    if (const CUresult bad = CheckSides(shape, dst, src); bad != CUDA_SUCCESS) return bad;
  }
  return SubmitCopy(name, shape, stream, synchronous);
}

CUDA_MEMCPY3D As3D(const CUDA_MEMCPY2D& flat) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = flat.srcXInBytes;
  copy.srcY = flat.srcY;
  copy.srcMemoryType = flat.srcMemoryType;
  copy.srcHost = flat.srcHost;
  copy.srcDevice = flat.srcDevice;
  copy.srcArray = flat.srcArray;
  copy.srcPitch = flat.srcPitch;
  copy.dstXInBytes = flat.dstXInBytes;
  copy.dstY = flat.dstY;
  copy.dstMemoryType = flat.dstMemoryType;
  copy.dstHost = flat.dstHost;
  copy.dstDevice = flat.dstDevice;
  copy.dstArray = flat.dstArray;
  copy.dstPitch = flat.dstPitch;
  copy.WidthInBytes = flat.WidthInBytes;
  copy.Height = flat.Height;
  copy.Depth = 1;
  return copy;
}

CUDA_MEMCPY3D As3D(const CUDA_MEMCPY3D_PEER& peer) {
  CUDA_MEMCPY3D copy{};
  copy.srcXInBytes = peer.srcXInBytes;
  copy.srcY = peer.srcY;
  copy.srcZ = peer.srcZ;
  copy.srcMemoryType = peer.srcMemoryType;
  copy.srcHost = peer.srcHost;
  copy.srcDevice = peer.srcDevice;
  copy.srcPitch = peer.srcPitch;
  copy.srcHeight = peer.srcHeight;
  copy.dstXInBytes = peer.dstXInBytes;
  copy.dstY = peer.dstY;
  copy.dstZ = peer.dstZ;
  copy.dstMemoryType = peer.dstMemoryType;
  copy.dstHost = peer.dstHost;
  copy.dstDevice = peer.dstDevice;
  copy.dstPitch = peer.dstPitch;
  copy.dstHeight = peer.dstHeight;
  copy.WidthInBytes = peer.WidthInBytes;
  copy.Height = peer.Height;
  copy.Depth = peer.Depth;
  return copy;
}

// Peer copies of the synchronous form are ordered after all work of both contexts.
CUresult JoinPeers(CUcontext dst, CUcontext src) {
  for (const CUcontext context : {dst, src}) {
    if (const CUresult bad = SynchronizeContext(context); bad != CUDA_SUCCESS) return bad;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult CopyHtoD(CUdeviceptr dst, const void* src, size_t bytes, CUstream stream, bool sync) {
  return Linear(sync ? "cuMemcpyHtoD" : "cuMemcpyHtoDAsync", dst, Side::kDevice, Address(src),
                Side::kHost, bytes, stream, sync);
}

CUresult CopyDtoH(void* dst, CUdeviceptr src, size_t bytes, CUstream stream, bool sync) {
  return Linear(sync ? "cuMemcpyDtoH" : "cuMemcpyDtoHAsync", Address(dst), Side::kHost, src,
                Side::kDevice, bytes, stream, sync);
}

CUresult CopyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool sync) {
  return Linear(sync ? "cuMemcpyDtoD" : "cuMemcpyDtoDAsync", dst, Side::kDevice, src, Side::kDevice,
                bytes, stream, sync);
}

CUresult CopyUnified(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream, bool sync) {
  return Linear(sync ? "cuMemcpy" : "cuMemcpyAsync", dst, Side::kUnified, src, Side::kUnified,
                bytes, stream, sync);
}

CUresult CopyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                  size_t bytes, CUstream stream, bool sync) {
  if (!IsContext(dst_context) || !IsContext(src_context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (sync) {
    if (const CUresult bad = JoinPeers(dst_context, src_context); bad != CUDA_SUCCESS) return bad;
  }
  return Linear(sync ? "cuMemcpyPeer" : "cuMemcpyPeerAsync", dst, Side::kDevice, src, Side::kDevice,
                bytes, stream, false);
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, bool sync) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Shaped(sync ? "cuMemcpy2D" : "cuMemcpy2DAsync", As3D(*copy), stream, sync);
}

CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream, bool sync) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Shaped(sync ? "cuMemcpy3D" : "cuMemcpy3DAsync", *copy, stream, sync);
}

CUresult Copy3DPeer(const CUDA_MEMCPY3D_PEER* copy, CUstream stream, bool sync) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(copy->dstContext) || !IsContext(copy->srcContext)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (sync) {
    if (const CUresult bad = JoinPeers(copy->dstContext, copy->srcContext); bad != CUDA_SUCCESS) {
      return bad;
    }
  }
  return Shaped(sync ? "cuMemcpy3DPeer" : "cuMemcpy3DPeerAsync", As3D(*copy), stream, false);
}

CUresult CopyBatch(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                   size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  if (dsts == nullptr || srcs == nullptr || sizes == nullptr || count == 0 ||
      stream == CU_STREAM_LEGACY) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = CopyUnified(dsts[i], srcs[i], sizes[i], stream, false);
    if (result != CUDA_SUCCESS) {
      if (failed != nullptr) *failed = i;
      return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIMGPU_PTDS(cuMemcpyHtoD_v2, CopyHtoD, (CUdeviceptr dst, const void* src, size_t bytes),
            (dst, src, bytes, stream, true))
SIMGPU_PTDS(cuMemcpyDtoH_v2, CopyDtoH, (void* dst, CUdeviceptr src, size_t bytes),
            (dst, src, bytes, stream, true))
SIMGPU_PTDS(cuMemcpyDtoD_v2, CopyDtoD, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
            (dst, src, bytes, stream, true))
SIMGPU_PTDS(cuMemcpy, CopyUnified, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
            (dst, src, bytes, stream, true))
SIMGPU_PTDS(cuMemcpyPeer, CopyPeer,
            (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
             size_t bytes),
            (dst, dst_context, src, src_context, bytes, stream, true))
SIMGPU_PTDS(cuMemcpy2D_v2, Copy2D, (const CUDA_MEMCPY2D* copy), (copy, stream, true))
SIMGPU_PTDS(cuMemcpy2DUnaligned_v2, Copy2D, (const CUDA_MEMCPY2D* copy), (copy, stream, true))
SIMGPU_PTDS(cuMemcpy3D_v2, Copy3D, (const CUDA_MEMCPY3D* copy), (copy, stream, true))
SIMGPU_PTDS(cuMemcpy3DPeer, Copy3DPeer, (const CUDA_MEMCPY3D_PEER* copy), (copy, stream, true))

SIMGPU_PTSZ(cuMemcpyHtoDAsync_v2, CopyHtoD,
            (CUdeviceptr dst, const void* src, size_t bytes, CUstream stream),
            (dst, src, bytes, stream, false))
SIMGPU_PTSZ(cuMemcpyDtoHAsync_v2, CopyDtoH,
            (void* dst, CUdeviceptr src, size_t bytes, CUstream stream),
            (dst, src, bytes, stream, false))
SIMGPU_PTSZ(cuMemcpyDtoDAsync_v2, CopyDtoD,
            (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
            (dst, src, bytes, stream, false))
SIMGPU_PTSZ(cuMemcpyAsync, CopyUnified,
            (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
            (dst, src, bytes, stream, false))
SIMGPU_PTSZ(cuMemcpyPeerAsync, CopyPeer,
            (CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
             size_t bytes, CUstream stream),
            (dst, dst_context, src, src_context, bytes, stream, false))
SIMGPU_PTSZ(cuMemcpy2DAsync_v2, Copy2D, (const CUDA_MEMCPY2D* copy, CUstream stream),
            (copy, stream, false))
SIMGPU_PTSZ(cuMemcpy3DAsync_v2, Copy3D, (const CUDA_MEMCPY3D* copy, CUstream stream),
            (copy, stream, false))
SIMGPU_PTSZ(cuMemcpy3DPeerAsync, Copy3DPeer, (const CUDA_MEMCPY3D_PEER* copy, CUstream stream),
            (copy, stream, false))
#undef cuMemcpyBatchAsync
SIMGPU_PTSZ(cuMemcpyBatchAsync, CopyBatch,
            (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
             CUmemcpyAttributes*, size_t*, size_t, size_t* failed, CUstream stream),
            (dsts, srcs, sizes, count, failed, stream))
SIMGPU_PTSZ(cuMemcpyBatchAsync_v2, CopyBatch,
            (CUdeviceptr * dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
             CUmemcpyAttributes*, size_t*, size_t, CUstream stream),
            (dsts, srcs, sizes, count, nullptr, stream))
