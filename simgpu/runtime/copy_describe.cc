// Translation of copy descriptions. Pure; any thread.

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/copy.h"

namespace simgpu::runtime {
namespace {

CUarray AsDriver(cudaArray_t array) { return reinterpret_cast<CUarray>(array); }

// Exactly one of array and pointer names each end.
template <typename In>
bool IsWellFormed(const In* in) {
  if (in == nullptr) return false;
  const bool source = (in->srcArray != nullptr) != (in->srcPtr.ptr != nullptr);
  const bool target = (in->dstArray != nullptr) != (in->dstPtr.ptr != nullptr);
  return source && target;
}

template <typename In>
bool IsEmpty(const In* in) {
  return in->extent.width == 0 || in->extent.height == 0 || in->extent.depth == 0;
}

template <typename In, typename Out>
int Describe(const In* in, Ends ends, Out* out) {
  *out = {};
  if (in == nullptr) return cudaErrorInvalidValue;
  if (!IsEmpty(in) && !IsWellFormed(in)) return cudaErrorInvalidValue;
  const bool flat = in->extent.height <= 1 && in->extent.depth <= 1;
  const auto too_narrow = [&](size_t pitch, const void* array) {
    return array == nullptr && !flat && in->extent.width > pitch;
  };
  if (!IsEmpty(in) &&
      (too_narrow(in->srcPtr.pitch, in->srcArray) || too_narrow(in->dstPtr.pitch, in->dstArray))) {
    return cudaErrorInvalidPitchValue;
  }
  out->srcXInBytes = in->srcPos.x;
  out->srcY = in->srcPos.y;
  out->srcZ = in->srcPos.z;
  out->srcMemoryType = in->srcArray != nullptr ? CU_MEMORYTYPE_ARRAY : ends.source;
  out->srcHost = in->srcPtr.ptr;
  out->srcDevice = Address(in->srcPtr.ptr);
  out->srcArray = AsDriver(in->srcArray);
  out->srcPitch = in->srcPtr.pitch;
  out->srcHeight = in->srcPtr.ysize;
  out->dstXInBytes = in->dstPos.x;
  out->dstY = in->dstPos.y;
  out->dstZ = in->dstPos.z;
  out->dstMemoryType = in->dstArray != nullptr ? CU_MEMORYTYPE_ARRAY : ends.target;
  out->dstHost = in->dstPtr.ptr;
  out->dstDevice = Address(in->dstPtr.ptr);
  out->dstArray = AsDriver(in->dstArray);
  out->dstPitch = in->dstPtr.pitch;
  out->dstHeight = in->dstPtr.ysize;
  out->WidthInBytes = in->extent.width;
  out->Height = in->extent.height;
  out->Depth = in->extent.depth;
  return cudaSuccess;
}

}  // namespace

Ends EndsOf(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST};
    case cudaMemcpyHostToDevice:
      return {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE};
    case cudaMemcpyDeviceToHost:
      return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST};
    case cudaMemcpyDeviceToDevice:
      return {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE};
    default:
      return {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED};
  }
}

int DescribeCopy(const cudaMemcpy3DParms* in, CUDA_MEMCPY3D* out) {
  if (in == nullptr) return cudaErrorInvalidValue;
  if (!IsCopyKind(in->kind)) return cudaErrorInvalidMemcpyDirection;
  return Describe(in, EndsOf(in->kind), out);
}

int DescribeCopy(const cudaMemcpy3DPeerParms* in, CUDA_MEMCPY3D_PEER* out) {
  return Describe(in, EndsOf(cudaMemcpyDefault), out);
}

void DescribeCopy(const CUDA_MEMCPY3D& in, cudaMemcpy3DParms* out) {
  const auto pointer = [](CUmemorytype type, const void* host, CUdeviceptr device) {
    return type == CU_MEMORYTYPE_HOST ? const_cast<void*>(host) : reinterpret_cast<void*>(device);
  };
  const bool source_on_host = in.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool target_on_host = in.dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool unified =
      in.srcMemoryType == CU_MEMORYTYPE_UNIFIED || in.dstMemoryType == CU_MEMORYTYPE_UNIFIED;
  *out = {};
  out->srcPos = {in.srcXInBytes, in.srcY, in.srcZ};
  out->dstPos = {in.dstXInBytes, in.dstY, in.dstZ};
  out->srcPtr = {pointer(in.srcMemoryType, in.srcHost, in.srcDevice), in.srcPitch, in.WidthInBytes,
                 in.srcHeight};
  out->dstPtr = {pointer(in.dstMemoryType, in.dstHost, in.dstDevice), in.dstPitch, in.WidthInBytes,
                 in.dstHeight};
  if (in.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
    out->srcPtr = {};
    out->srcArray = reinterpret_cast<cudaArray_t>(in.srcArray);
  }
  if (in.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    out->dstPtr = {};
    out->dstArray = reinterpret_cast<cudaArray_t>(in.dstArray);
  }
  out->extent = {in.WidthInBytes, in.Height, in.Depth};
  out->kind = unified          ? cudaMemcpyDefault
              : source_on_host ? (target_on_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice)
              : target_on_host ? cudaMemcpyDeviceToHost
                               : cudaMemcpyDeviceToDevice;
}

int DescribeRun(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                CUDA_MEMCPY3D* out) {
  cudaMemcpy3DParms run = {};
  run.srcPtr = {const_cast<void*>(source), bytes, bytes, 1};
  run.dstPtr = {target, bytes, bytes, 1};
  run.extent = {bytes, 1, 1};
  run.kind = kind;
  return DescribeCopy(&run, out);
}

}  // namespace simgpu::runtime
