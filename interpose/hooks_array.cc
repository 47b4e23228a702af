// Arrays and mipmapped arrays: the driver serves them, room is made for them and they are counted
// by their texels, since what padding the driver adds it does not say. Sparse arrays have no memory
// of their own; what is mapped into them is VMM memory.

#include "interpose/charge.h"

namespace tidemark::interpose {
namespace {

size_t BytesPerChannel(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 1;  // block-compressed and video formats: about a byte per texel and channel
  }
}

uint64_t ArrayBytes(size_t width, size_t height, size_t depth, CUarray_format format,
                    unsigned channels) {
  uint64_t texels = uint64_t{width} * (height != 0 ? height : 1) * (depth != 0 ? depth : 1);
  return texels * BytesPerChannel(format) * channels;
}

uint64_t ArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if ((shape.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0) return 0;
  return ArrayBytes(shape.Width, shape.Height, shape.Depth, shape.Format, shape.NumChannels);
}

// All levels: each has half the width, height and depth of the one above it, at least one texel.
uint64_t MipmapBytes(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < levels && i < 32; ++i) {
    bytes += ArrayBytes(shape);
    if (shape.Width > 1) shape.Width /= 2;
    if (shape.Height > 1) shape.Height /= 2;
    if (shape.Depth > 1 && (shape.Flags & CUDA_ARRAY3D_LAYERED) == 0) shape.Depth /= 2;
  }
  return bytes;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  auto call = [&] { return tidemark_real_cuArrayCreate_v2(array, shape); };
  Guard guard;
  if (!Manages(guard) || array == nullptr || shape == nullptr) return call();
  uint64_t bytes = ArrayBytes(shape->Width, shape->Height, 1, shape->Format, shape->NumChannels);
  return Charged(guard, OutsideKind::kArray, CurrentDevice(), bytes, array, call);
}

CUresult Hook_cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  auto call = [&] { return tidemark_real_cuArray3DCreate_v2(array, shape); };
  Guard guard;
  if (!Manages(guard) || array == nullptr || shape == nullptr) return call();
  return Charged(guard, OutsideKind::kArray, CurrentDevice(), ArrayBytes(*shape), array, call);
}

CUresult Hook_cuArrayDestroy(CUarray array) {
  auto call = [&] { return tidemark_real_cuArrayDestroy(array); };
  Guard guard;
  if (!Manages(guard)) return call();
  return Uncounted(guard, OutsideKind::kArray, reinterpret_cast<uint64_t>(array), call);
}

CUresult Hook_cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                     unsigned levels) {
  auto call = [&] { return tidemark_real_cuMipmappedArrayCreate(array, shape, levels); };
  Guard guard;
  if (!Manages(guard) || array == nullptr || shape == nullptr) return call();
  return Charged(guard, OutsideKind::kArray, CurrentDevice(), MipmapBytes(*shape, levels), array,
                 call);
}

CUresult Hook_cuMipmappedArrayDestroy(CUmipmappedArray array) {
  auto call = [&] { return tidemark_real_cuMipmappedArrayDestroy(array); };
  Guard guard;
  if (!Manages(guard)) return call();
  return Uncounted(guard, OutsideKind::kArray, reinterpret_cast<uint64_t>(array), call);
}
