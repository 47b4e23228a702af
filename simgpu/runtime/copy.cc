// The copy families: plain, 2D, 3D, peer, batched, each waited for (_ptds) or queued (_ptsz).
// Threads: any.

#include "simgpu/runtime/copy.h"

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

struct Plane {
  void* target;
  size_t target_pitch;
  const void* source;
  size_t source_pitch;
  size_t width;
  size_t height;
  cudaMemcpyKind kind;
};

int Describe(const Plane& plane, CUDA_MEMCPY2D* out) {
  *out = {};
  if (!IsCopyKind(plane.kind)) return cudaErrorInvalidMemcpyDirection;
  if (plane.width > plane.target_pitch || plane.width > plane.source_pitch) {
    return cudaErrorInvalidPitchValue;
  }
  const Ends ends = EndsOf(plane.kind);
  out->srcMemoryType = ends.source;
  out->srcHost = plane.source;
  out->srcDevice = Address(plane.source);
  out->srcPitch = plane.source_pitch;
  out->dstMemoryType = ends.target;
  out->dstHost = plane.target;
  out->dstDevice = Address(plane.target);
  out->dstPitch = plane.target_pitch;
  out->WidthInBytes = plane.width;
  out->Height = plane.height;
  return cudaSuccess;
}

int CopyPlane(const Driver& d, const Plane& plane) {
  CUDA_MEMCPY2D copy;
  if (plane.width == 0 || plane.height == 0) return cudaSuccess;
  if (int code = Describe(plane, &copy)) return code;
  return d.cuMemcpy2DUnaligned(&copy);
}

int CopyPlaneAsync(const Driver& d, const Plane& plane, cudaStream_t stream) {
  CUDA_MEMCPY2D copy;
  if (plane.width == 0 || plane.height == 0) return cudaSuccess;
  if (int code = Describe(plane, &copy)) return code;
  return d.cuMemcpy2DAsync(&copy, stream);
}

int CopyBox(const Driver& d, const cudaMemcpy3DParms* box) {
  CUDA_MEMCPY3D copy;
  if (int code = DescribeCopy(box, &copy)) return code;
  return d.cuMemcpy3D(&copy);
}

int CopyBoxAsync(const Driver& d, const cudaMemcpy3DParms* box, cudaStream_t stream) {
  CUDA_MEMCPY3D copy;
  if (int code = DescribeCopy(box, &copy)) return code;
  return d.cuMemcpy3DAsync(&copy, stream);
}

int DescribePeerBox(const Driver& d, const cudaMemcpy3DPeerParms* box, CUDA_MEMCPY3D_PEER* copy) {
  if (int code = DescribeCopy(box, copy)) return code;
  if (int code = RetainPrimary(d, box->srcDevice, &copy->srcContext)) return code;
  return RetainPrimary(d, box->dstDevice, &copy->dstContext);
}

int CopyPeerBox(const Driver& d, const cudaMemcpy3DPeerParms* box) {
  CUDA_MEMCPY3D_PEER copy;
  if (int code = DescribePeerBox(d, box, &copy)) return code;
  return d.cuMemcpy3DPeer(&copy);
}

int CopyPeerBoxAsync(const Driver& d, const cudaMemcpy3DPeerParms* box, cudaStream_t stream) {
  CUDA_MEMCPY3D_PEER copy;
  if (int code = DescribePeerBox(d, box, &copy)) return code;
  return d.cuMemcpy3DPeerAsync(&copy, stream);
}

struct PeerContexts {
  CUcontext source = nullptr;
  CUcontext target = nullptr;
};

int FindPeers(const Driver& d, int source, int target, PeerContexts* peers) {
  if (int code = RetainPrimary(d, source, &peers->source)) return code;
  return RetainPrimary(d, target, &peers->target);
}

int CopyPeer(const Driver& d, void* target, int target_device, const void* source,
             int source_device, size_t bytes) {
  PeerContexts peers;
  if (int code = FindPeers(d, source_device, target_device, &peers)) return code;
  if (bytes == 0) return cudaSuccess;
  return d.cuMemcpyPeer(Address(target), peers.target, Address(source), peers.source, bytes);
}

struct Run {
  void* target;
  const void* source;
  size_t bytes;
};

int CopyPeerAsync(const Driver& d, const Run& run, int target_device, int source_device,
                  cudaStream_t stream) {
  PeerContexts peers;
  if (int code = FindPeers(d, source_device, target_device, &peers)) return code;
  if (run.bytes == 0) return cudaSuccess;
  return d.cuMemcpyPeerAsync(Address(run.target), peers.target, Address(run.source), peers.source,
                             run.bytes, stream);
}

static_assert(sizeof(cudaMemcpyAttributes) == sizeof(CUmemcpyAttributes));

// The driver takes the lists as numbers and does not change them.
CUdeviceptr* AddressesOf(const void* list) {
  return static_cast<CUdeviceptr*>(const_cast<void*>(list));
}

}  // namespace

int CopyRun(const Driver& d, void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return d.cuMemcpyHtoD(Address(target), source, bytes);
    case cudaMemcpyDeviceToHost:
      return d.cuMemcpyDtoH(target, Address(source), bytes);
    case cudaMemcpyDeviceToDevice:
      return d.cuMemcpyDtoD(Address(target), Address(source), bytes);
    default:
      return d.cuMemcpy(Address(target), Address(source), bytes);
  }
}

int CopyRunAsync(const Driver& d, void* target, const void* source, size_t bytes,
                 cudaMemcpyKind kind, cudaStream_t stream) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return d.cuMemcpyHtoDAsync(Address(target), source, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return d.cuMemcpyDtoHAsync(target, Address(source), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return d.cuMemcpyDtoDAsync(Address(target), Address(source), bytes, stream);
    default:
      return d.cuMemcpyAsync(Address(target), Address(source), bytes, stream);
  }
}

SIMGPU_CALL_TWINS(cudaMemcpy, _ptds,
                  (void* target, const void* source, size_t bytes, cudaMemcpyKind kind),
                  CopyRun(d, target, source, bytes, kind))
SIMGPU_CALL_TWINS(cudaMemcpyAsync, _ptsz,
                  (void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                   cudaStream_t stream),
                  CopyRunAsync(d, target, source, bytes, kind, stream))
SIMGPU_CALL_TWINS(cudaMemcpy2D, _ptds,
                  (void* target, size_t target_pitch, const void* source, size_t source_pitch,
                   size_t width, size_t height, cudaMemcpyKind kind),
                  CopyPlane(d, {target, target_pitch, source, source_pitch, width, height, kind}))
SIMGPU_CALL_TWINS(cudaMemcpy2DAsync, _ptsz,
                  (void* target, size_t target_pitch, const void* source, size_t source_pitch,
                   size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream),
                  CopyPlaneAsync(d,
                                 {target, target_pitch, source, source_pitch, width, height, kind},
                                 stream))
SIMGPU_CALL_TWINS(cudaMemcpy3D, _ptds, (const cudaMemcpy3DParms* box), CopyBox(d, box))
SIMGPU_CALL_TWINS(cudaMemcpy3DAsync, _ptsz, (const cudaMemcpy3DParms* box, cudaStream_t stream),
                  CopyBoxAsync(d, box, stream))
SIMGPU_CALL_TWINS(cudaMemcpy3DPeer, _ptds, (const cudaMemcpy3DPeerParms* box), CopyPeerBox(d, box))
SIMGPU_CALL_TWINS(cudaMemcpy3DPeerAsync, _ptsz,
                  (const cudaMemcpy3DPeerParms* box, cudaStream_t stream),
                  CopyPeerBoxAsync(d, box, stream))
SIMGPU_CALL(cudaMemcpyPeer,
            (void* target, int target_device, const void* source, int source_device, size_t bytes),
            CopyPeer(d, target, target_device, source, source_device, bytes))
SIMGPU_CALL(cudaMemcpyPeerAsync,
            (void* target, int target_device, const void* source, int source_device, size_t bytes,
             cudaStream_t stream),
            CopyPeerAsync(d, {target, source, bytes}, target_device, source_device, stream))
SIMGPU_CALL_TWINS(cudaMemcpyBatchAsync, _ptsz,
                  (void* const* targets, const void* const* sources, const size_t* sizes,
                   size_t count, cudaMemcpyAttributes* attributes, size_t* attribute_indices,
                   size_t attribute_count, cudaStream_t stream),
                  d.cuMemcpyBatchAsync(AddressesOf(targets), AddressesOf(sources),
                                       const_cast<size_t*>(sizes), count,
                                       reinterpret_cast<CUmemcpyAttributes*>(attributes),
                                       attribute_indices, attribute_count, stream))

}  // namespace simgpu::runtime
