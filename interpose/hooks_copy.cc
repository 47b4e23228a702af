// Copies: each passes the gate with the device ranges that it reads and writes. Ranges in host
// memory are named too (a unified address may be either); the gate ignores them.

#include <stdlib.h>

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

// Larger copies are data; tables of pointers (batched GEMM, grouped kernels) are short.
constexpr size_t kLargestPointerTable = 64 * 1024;

CUdeviceptr Address(const void* host) { return reinterpret_cast<CUdeviceptr>(host); }

// A host-to-device copy, whose bytes may be addresses.
template <typename Call>
CUresult Upload(CUstream stream, CUdeviceptr to, const void* from, size_t bytes, const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  GateSpan span = Writes(to, bytes);
  GatePass pass(guard, stream, &span, 1);
  CUresult result = call();
  bool table = bytes >= sizeof(CUdeviceptr) && bytes <= kLargestPointerTable;
  if (table && result == CUDA_SUCCESS) ManagerNotePointerTable(guard, to, from, bytes);
  return result;
}

// One side of a 2D or 3D copy as a span; empty for arrays, which are not ours.
GateSpan Side(CUmemorytype type, CUdeviceptr device, const void* host, size_t offset, size_t bytes,
              bool write) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return {Address(host) + offset, bytes, write};
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return {device + offset, bytes, write};
    default:
      return {0, 0, write};
  }
}

struct TwoSpans {
  GateSpan from;
  GateSpan to;
};

TwoSpans SpansOf(const CUDA_MEMCPY2D& copy) {
  size_t from_offset = copy.srcY * copy.srcPitch + copy.srcXInBytes;
  size_t to_offset = copy.dstY * copy.dstPitch + copy.dstXInBytes;
  return {Side(copy.srcMemoryType, copy.srcDevice, copy.srcHost, from_offset,
               PitchedBytes(copy.srcPitch, copy.WidthInBytes, copy.Height), false),
          Side(copy.dstMemoryType, copy.dstDevice, copy.dstHost, to_offset,
               PitchedBytes(copy.dstPitch, copy.WidthInBytes, copy.Height), true)};
}

// Bytes from the first to the last byte of `depth` slices of `height` rows.
size_t SlicedBytes(size_t slice_bytes, size_t pitch, size_t row_bytes, size_t height,
                   size_t depth) {
  return PitchedBytes(slice_bytes, PitchedBytes(pitch, row_bytes, height), depth);
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER name their fields alike.
template <typename Copy>
TwoSpans SpansOf3D(const Copy& copy) {
  size_t from_slice = copy.srcPitch * (copy.srcHeight != 0 ? copy.srcHeight : copy.Height);
  size_t to_slice = copy.dstPitch * (copy.dstHeight != 0 ? copy.dstHeight : copy.Height);
  size_t from_offset = copy.srcZ * from_slice + copy.srcY * copy.srcPitch + copy.srcXInBytes;
  size_t to_offset = copy.dstZ * to_slice + copy.dstY * copy.dstPitch + copy.dstXInBytes;
  return {
      Side(copy.srcMemoryType, copy.srcDevice, copy.srcHost, from_offset,
           SlicedBytes(from_slice, copy.srcPitch, copy.WidthInBytes, copy.Height, copy.Depth),
           false),
      Side(copy.dstMemoryType, copy.dstDevice, copy.dstHost, to_offset,
           SlicedBytes(to_slice, copy.dstPitch, copy.WidthInBytes, copy.Height, copy.Depth), true)};
}

TwoSpans SpansOf(const CUDA_MEMCPY3D& copy) { return SpansOf3D(copy); }
TwoSpans SpansOf(const CUDA_MEMCPY3D_PEER& copy) { return SpansOf3D(copy); }

template <typename Copy, typename Call>
CUresult Described(CUstream stream, const Copy* copy, const Call& call) {
  if (copy == nullptr) return call();
  TwoSpans spans = SpansOf(*copy);
  return ThroughGate(stream, {spans.from, spans.to}, call);
}

// Two spans for each of `count` copies; on the stack when they are few.
class BatchSpans {
 public:
  explicit BatchSpans(size_t copies) : capacity_(2 * copies) {
    if (capacity_ <= kFew) return;
    spans_ = static_cast<GateSpan*>(malloc(capacity_ * sizeof(GateSpan)));
  }
  ~BatchSpans() {
    if (spans_ != few_) free(spans_);
  }
  BatchSpans(const BatchSpans&) = delete;
  BatchSpans& operator=(const BatchSpans&) = delete;
  bool valid() const { return spans_ != nullptr; }
  void Add(const GateSpan& span) { spans_[count_++] = span; }
  const GateSpan* data() const { return spans_; }
  size_t size() const { return count_; }

 private:
  static constexpr size_t kFew = 64;
  GateSpan few_[kFew];
  GateSpan* spans_ = few_;
  size_t capacity_;
  size_t count_ = 0;
};

template <typename Fill, typename Call>
CUresult Batch(CUstream stream, size_t copies, const Fill& fill, const Call& call) {
  Guard guard;
  if (!Manages(guard)) return call();
  BatchSpans spans(copies);
  if (!spans.valid()) return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < copies; ++i) fill(&spans, i);
  GatePass pass(guard, stream, spans.data(), spans.size());
  return call();
}

template <typename Call>
CUresult FlatBatch(CUstream stream, const CUdeviceptr* to, const CUdeviceptr* from,
                   const size_t* bytes, size_t count, const Call& call) {
  if (to == nullptr || from == nullptr || bytes == nullptr) return call();
  auto fill = [&](BatchSpans* spans, size_t i) {
    spans->Add(Reads(from[i], bytes[i]));
    spans->Add(Writes(to[i], bytes[i]));
  };
  return Batch(stream, count, fill, call);
}

// The extent of a batched 3D copy is in elements of unknown size when an array takes part, so the
// whole buffer (0 bytes) is named.
template <typename Call>
CUresult VolumeBatch(CUstream stream, const CUDA_MEMCPY3D_BATCH_OP* list, size_t count,
                     const Call& call) {
  if (list == nullptr) return call();
  auto fill = [&](BatchSpans* spans, size_t i) {
    if (list[i].src.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
      spans->Add(Reads(list[i].src.op.ptr.ptr, 0));
    }
    if (list[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER) {
      spans->Add(Writes(list[i].dst.op.ptr.ptr, 0));
    }
  };
  return Batch(stream, count, fill, call);
}

}  // namespace
}  // namespace tidemark::interpose

// cuda.h renames these to their second version; both are hooked.
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

TIDEMARK_GATED_SYNC(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes),
                    Reads(from, bytes), Writes(to, bytes))
TIDEMARK_GATED_ASYNC(cuMemcpyAsync,
                     (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream hStream),
                     (to, from, bytes, hStream), Reads(from, bytes), Writes(to, bytes))
TIDEMARK_GATED_SYNC(cuMemcpyPeer,
                    (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                     size_t bytes),
                    (to, to_context, from, from_context, bytes), Reads(from, bytes),
                    Writes(to, bytes))
TIDEMARK_GATED_ASYNC(cuMemcpyPeerAsync,
                     (CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, size_t bytes, CUstream hStream),
                     (to, to_context, from, from_context, bytes, hStream), Reads(from, bytes),
                     Writes(to, bytes))
TIDEMARK_GATED_SYNC(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t bytes), (to, from, bytes),
                    Reads(from, bytes))
TIDEMARK_GATED_ASYNC(cuMemcpyDtoHAsync_v2,
                     (void* to, CUdeviceptr from, size_t bytes, CUstream hStream),
                     (to, from, bytes, hStream), Reads(from, bytes))
TIDEMARK_GATED_SYNC(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
                    (to, from, bytes), Reads(from, bytes), Writes(to, bytes))
TIDEMARK_GATED_ASYNC(cuMemcpyDtoDAsync_v2,
                     (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream hStream),
                     (to, from, bytes, hStream), Reads(from, bytes), Writes(to, bytes))
TIDEMARK_GATED_SYNC(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t bytes),
                    (to, offset, from, bytes), Reads(from, bytes))
TIDEMARK_GATED_SYNC(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t bytes),
                    (to, from, offset, bytes), Writes(to, bytes))

#define TIDEMARK_UPLOAD(name, parameters, arguments, stream)                                \
  CUresult Hook_##name parameters {                                                         \
    return Upload(stream, to, from, bytes, [&] { return tidemark_real_##name arguments; }); \
  }
TIDEMARK_UPLOAD(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t bytes),
                (to, from, bytes), nullptr)
TIDEMARK_UPLOAD(cuMemcpyHtoD_v2_ptds, (CUdeviceptr to, const void* from, size_t bytes),
                (to, from, bytes), CU_STREAM_PER_THREAD)
TIDEMARK_UPLOAD(cuMemcpyHtoDAsync_v2,
                (CUdeviceptr to, const void* from, size_t bytes, CUstream hStream),
                (to, from, bytes, hStream), hStream)
TIDEMARK_UPLOAD(cuMemcpyHtoDAsync_v2_ptsz,
                (CUdeviceptr to, const void* from, size_t bytes, CUstream hStream),
                (to, from, bytes, hStream), PerThread(hStream))

#define TIDEMARK_DESCRIBED(name, parameters, arguments, stream)                     \
  CUresult Hook_##name parameters {                                                 \
    return Described(stream, copy, [&] { return tidemark_real_##name arguments; }); \
  }
#define TIDEMARK_DESCRIBED_SYNC(name, Copy)                     \
  TIDEMARK_DESCRIBED(name, (const Copy* copy), (copy), nullptr) \
  TIDEMARK_DESCRIBED(name##_ptds, (const Copy* copy), (copy), CU_STREAM_PER_THREAD)
#define TIDEMARK_DESCRIBED_ASYNC(name, Copy)                                               \
  TIDEMARK_DESCRIBED(name, (const Copy* copy, CUstream hStream), (copy, hStream), hStream) \
  TIDEMARK_DESCRIBED(name##_ptsz, (const Copy* copy, CUstream hStream), (copy, hStream),   \
                     PerThread(hStream))
TIDEMARK_DESCRIBED_SYNC(cuMemcpy2D_v2, CUDA_MEMCPY2D)
TIDEMARK_DESCRIBED_SYNC(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D)
TIDEMARK_DESCRIBED_SYNC(cuMemcpy3D_v2, CUDA_MEMCPY3D)
TIDEMARK_DESCRIBED_SYNC(cuMemcpy3DPeer, CUDA_MEMCPY3D_PEER)
TIDEMARK_DESCRIBED_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D)
TIDEMARK_DESCRIBED_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D)
TIDEMARK_DESCRIBED_ASYNC(cuMemcpy3DPeerAsync, CUDA_MEMCPY3D_PEER)

#define TIDEMARK_FLAT_BATCH(name, parameters, arguments, stream)      \
  CUresult Hook_##name parameters {                                   \
    return FlatBatch(stream, to, from, bytes, count,                  \
                     [&] { return tidemark_real_##name arguments; }); \
  }
#define TIDEMARK_FLAT_BATCH_TWIN(name, parameters, arguments) \
  TIDEMARK_FLAT_BATCH(name, parameters, arguments, hStream)   \
  TIDEMARK_FLAT_BATCH(name##_ptsz, parameters, arguments, PerThread(hStream))
TIDEMARK_FLAT_BATCH_TWIN(cuMemcpyBatchAsync,
                         (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
                          CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                          size_t* failed, CUstream hStream),
                         (to, from, bytes, count, attributes, indices, attribute_count, failed,
                          hStream))
TIDEMARK_FLAT_BATCH_TWIN(cuMemcpyBatchAsync_v2,
                         (CUdeviceptr * to, CUdeviceptr* from, size_t* bytes, size_t count,
                          CUmemcpyAttributes* attributes, size_t* indices, size_t attribute_count,
                          CUstream hStream),
                         (to, from, bytes, count, attributes, indices, attribute_count, hStream))

#define TIDEMARK_VOLUME_BATCH(name, parameters, arguments, stream)                           \
  CUresult Hook_##name parameters {                                                          \
    return VolumeBatch(stream, list, count, [&] { return tidemark_real_##name arguments; }); \
  }
#define TIDEMARK_VOLUME_BATCH_TWIN(name, parameters, arguments) \
  TIDEMARK_VOLUME_BATCH(name, parameters, arguments, hStream)   \
  TIDEMARK_VOLUME_BATCH(name##_ptsz, parameters, arguments, PerThread(hStream))
TIDEMARK_VOLUME_BATCH_TWIN(cuMemcpy3DBatchAsync,
                           (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, size_t* failed,
                            unsigned long long flags, CUstream hStream),
                           (count, list, failed, flags, hStream))
TIDEMARK_VOLUME_BATCH_TWIN(cuMemcpy3DBatchAsync_v2,
                           (size_t count, CUDA_MEMCPY3D_BATCH_OP* list, unsigned long long flags,
                            CUstream hStream),
                           (count, list, flags, hStream))
