// See copy.h.

#include "simgpu/driver/copy.h"

#include <cstring>
#include <memory>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// What a host's own memcpy is taken to move, for copies between two host memories.
constexpr double kHostBytesPerSecond = 10e9;

// Where a copy reads from when its source is pageable: the host's bytes as they were at submission.
struct StagedSource {
  bool consumed = false;
  std::vector<unsigned char> bytes;  // packed rows; empty until staged
};

bool OnHost(const Place& place) {
  return place.space == Space::kPageable || place.space == Space::kPinned || place.host_backed;
}

void AddSpans(std::vector<Span>* touches, CUdeviceptr base, const CopyShape& shape, size_t pitch,
              size_t slice, bool write) {
  if (PlaceOf(base).space == Space::kPageable) return;  // the host's own business
  const bool one_plane = shape.depth == 1 || slice == shape.height * shape.width;
  if ((shape.height == 1 || pitch == shape.width) && one_plane) {
    touches->push_back({base, shape.Bytes(), write});
    return;
  }
  for (size_t z = 0; z < shape.depth; ++z) {
    for (size_t y = 0; y < shape.height; ++y) {
      touches->push_back({base + z * slice + y * pitch, shape.width, write});
    }
  }
}

void CopyRows(const CopyShape& shape, const StagedSource* staged) {
  const bool packed = staged != nullptr && !staged->bytes.empty();
  const size_t src_pitch = packed ? shape.width : shape.src_pitch;
  const size_t src_slice = packed ? shape.width * shape.height : shape.src_slice;
  auto* dst = reinterpret_cast<unsigned char*>(shape.dst);
  const auto* src =
      packed ? staged->bytes.data() : reinterpret_cast<const unsigned char*>(shape.src);
  for (size_t z = 0; z < shape.depth; ++z) {
    for (size_t y = 0; y < shape.height; ++y) {
      memmove(dst + z * shape.dst_slice + y * shape.dst_pitch, src + z * src_slice + y * src_pitch,
              shape.width);
    }
  }
}

void Stage(const CopyShape& shape, StagedSource* staged) {
  staged->bytes.resize(shape.Bytes());
  CopyShape take = shape;
  take.dst = reinterpret_cast<CUdeviceptr>(staged->bytes.data());
  take.dst_pitch = shape.width;
  take.dst_slice = shape.width * shape.height;
  CopyRows(take, nullptr);
}

void SetUnit(const CopyShape& shape, const Place& dst, const Place& src, Operation* op) {
  const Config& config = GetConfig();
  const double bytes = static_cast<double>(shape.Bytes());
  if (OnHost(src) && OnHost(dst)) {
    op->unit = Unit::kHost;
    op->seconds = bytes / kHostBytesPerSecond;
  } else if (OnHost(src)) {
    op->unit = Unit::kCopyToDevice;
    op->seconds = bytes / config.h2d_bytes_per_second;
  } else if (OnHost(dst)) {
    op->unit = Unit::kCopyToHost;
    op->seconds = bytes / config.d2h_bytes_per_second;
  } else {
    op->unit = Unit::kCopyOnDevice;
    // Between devices over the link; within one, every byte is read and written.
    op->seconds = src.device >= 0 && dst.device >= 0 && src.device != dst.device
                      ? bytes / config.d2h_bytes_per_second
                      : 2 * bytes / config.memory_bytes_per_second;
  }
}

CUDA_MEMCPY3D DescribeShape(const CopyShape& shape) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = shape.src;
  copy.dstDevice = shape.dst;
  copy.srcPitch = shape.src_pitch;
  copy.dstPitch = shape.dst_pitch;
  copy.srcHeight = shape.src_pitch == 0 ? 0 : shape.src_slice / shape.src_pitch;
  copy.dstHeight = shape.dst_pitch == 0 ? 0 : shape.dst_slice / shape.dst_pitch;
  copy.WidthInBytes = shape.width;
  copy.Height = shape.height;
  copy.Depth = shape.depth;
  return copy;
}

Operation MakeOperation(const char* name, const CopyShape& shape,
                        const std::shared_ptr<StagedSource>& staged) {
  Operation op;
  op.name = name;
  op.bytes = shape.Bytes();
  const Place dst = PlaceOf(shape.dst);
  const Place src = PlaceOf(shape.src);
  SetUnit(shape, dst, src, &op);
  AddSpans(&op.touches, shape.src, shape, shape.src_pitch, shape.src_slice, false);
  AddSpans(&op.touches, shape.dst, shape, shape.dst_pitch, shape.dst_slice, true);
  op.run = [shape, staged](Operation&) {
    CopyRows(shape, staged.get());
    if (staged) staged->consumed = true;
    return CUDA_SUCCESS;
  };
  return op;
}

CUresult SideOf(CUmemorytype type, const void* host, CUdeviceptr device, CUdeviceptr* base,
                Side* side) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      *base = reinterpret_cast<CUdeviceptr>(host);
      *side = Side::kHost;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_DEVICE:
      *base = device;
      *side = Side::kDevice;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_UNIFIED:
      *base = device;
      *side = Side::kUnified;
      return CUDA_SUCCESS;
    case CU_MEMORYTYPE_ARRAY:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult ShapeOf(const CUDA_MEMCPY3D& copy, CopyShape* shape, Side* dst, Side* src) {
  CUdeviceptr src_base = 0;
  CUdeviceptr dst_base = 0;
  if (const CUresult bad = SideOf(copy.srcMemoryType, copy.srcHost, copy.srcDevice, &src_base, src);
      bad != CUDA_SUCCESS) {
    return bad;
  }
  if (const CUresult bad = SideOf(copy.dstMemoryType, copy.dstHost, copy.dstDevice, &dst_base, dst);
      bad != CUDA_SUCCESS) {
    return bad;
  }
  const bool rows = copy.Height > 1 || copy.Depth > 1;
  const auto bad_pitch = [&](size_t pitch, size_t x) {
    return pitch == 0 ? rows : pitch < copy.WidthInBytes + x;
  };
  if (bad_pitch(copy.srcPitch, copy.srcXInBytes) || bad_pitch(copy.dstPitch, copy.dstXInBytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (copy.Depth > 1 && ((copy.srcHeight != 0 && copy.srcHeight < copy.Height + copy.srcY) ||
                         (copy.dstHeight != 0 && copy.dstHeight < copy.Height + copy.dstY))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  shape->width = copy.WidthInBytes;
  shape->height = copy.Height;
  shape->depth = copy.Depth;
  shape->src_pitch = copy.srcPitch != 0 ? copy.srcPitch : copy.WidthInBytes;
  shape->dst_pitch = copy.dstPitch != 0 ? copy.dstPitch : copy.WidthInBytes;
  shape->src_slice = shape->src_pitch * (copy.srcHeight != 0 ? copy.srcHeight : copy.Height);
  shape->dst_slice = shape->dst_pitch * (copy.dstHeight != 0 ? copy.dstHeight : copy.Height);
  shape->src =
      src_base + copy.srcZ * shape->src_slice + copy.srcY * shape->src_pitch + copy.srcXInBytes;
  shape->dst =
      dst_base + copy.dstZ * shape->dst_slice + copy.dstY * shape->dst_pitch + copy.dstXInBytes;
  return CUDA_SUCCESS;
}

CUresult CheckSides(const CopyShape& shape, Side dst, Side src) {
  if (shape.dst == 0 || shape.src == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto host_only = [](CUdeviceptr at) {
    return !LooksLikeDeviceAddress(at) && PlaceOf(at).space == Space::kPageable;
  };
  if (dst == Side::kDevice && host_only(shape.dst)) return CUDA_ERROR_INVALID_VALUE;
  if (src == Side::kDevice && host_only(shape.src)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

Operation MakeCopyOperation(const char* name, const CopyShape& shape, bool staged) {
  std::shared_ptr<StagedSource> source;
  if (staged) {
    source = std::make_shared<StagedSource>();
    Stage(shape, source.get());
  }
  return MakeOperation(name, shape, source);
}

CUresult SubmitCopy(const char* name, const CopyShape& shape, CUstream handle, bool synchronous) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (shape.Bytes() == 0) return CUDA_SUCCESS;
  if (stream->capture != nullptr) {
    if (synchronous) return ForbidOnCapturing(stream);
    Operation op;
    op.params = std::make_shared<NodeParams>();
    op.params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    op.params->context = stream->context;
    op.params->copy = DescribeShape(shape);
    return Submit(handle, std::move(op));
  }
  const bool from_pageable = PlaceOf(shape.src).space == Space::kPageable;
  const bool to_pageable = PlaceOf(shape.dst).space == Space::kPageable;
  const bool from_host = from_pageable || PlaceOf(shape.src).space == Space::kPinned;
  const bool to_host = to_pageable || PlaceOf(shape.dst).space == Space::kPinned;
  if (from_pageable && !to_host) {
    // The bytes are staged before the call returns; their arrival on the device is not waited for.
    // The synchronous form waits for the stream first.
    if (synchronous) {
      lock.unlock();
      if (const CUresult bad = SynchronizeStream(handle); bad != CUDA_SUCCESS) return bad;
      lock.lock();
    }
    auto source = std::make_shared<StagedSource>();
    const CUresult result = Submit(handle, MakeOperation(name, shape, source));
    if (result == CUDA_SUCCESS && !source->consumed) Stage(shape, source.get());
    return result;
  }
  const CUresult result = Submit(handle, MakeOperation(name, shape, nullptr));
  const bool host_to_host = from_host && to_host;
  const bool waits = host_to_host || to_pageable || (synchronous && (from_host || to_host));
  if (result != CUDA_SUCCESS || !waits) return result;
  lock.unlock();
  return SynchronizeStream(handle);
}

}  // namespace simgpu
