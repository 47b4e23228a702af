// Plain device memory; see alloc.h. Thread rule: callers hold the driver lock.

#include "simgpu/driver/alloc.h"

#include <cstring>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/memory.h"

namespace simgpu {
namespace {

// Read as floats it is NaN, as integers -1: a job that reads before it writes shows it.
constexpr int kPoison = 0xFF;
constexpr size_t kSmall = size_t{1} << 20;
constexpr size_t kSmallStep = size_t{64} << 10;

size_t RoundUp(size_t value, size_t step) { return (value + step - 1) / step * step; }

void Poison(const Range& range) {
  DeviceBytes open;
  std::memset(reinterpret_cast<void*>(range.base), kPoison, range.span_bytes);
}

}  // namespace

size_t ChargedBytes(size_t bytes) {
  return bytes <= kSmall ? RoundUp(bytes, kSmallStep) : RoundUp(bytes, kGranularity);
}

Range* PlaceRange(Kind kind, std::unique_ptr<Physical> physical, size_t bytes, CUresult* result) {
  const size_t span = physical->memory.bytes;
  Range range;
  range.kind = kind;
  range.base = TakeAddresses(span, kGranularity, 0);
  range.bytes = bytes;
  range.span_bytes = span;
  range.device = physical->memory.device;
  const Physical& memory = *physical;
  range.own = std::move(physical);
  *result = CUDA_ERROR_OUT_OF_MEMORY;
  if (range.base == 0) return nullptr;
  Range* added = AddRange(std::move(range));
  if (!MapBytes(*added, memory)) {
    GiveAddresses(added->base, span);
    RemoveRange(added->base, "could not be mapped");
    return nullptr;
  }
  *result = CUDA_SUCCESS;
  return added;
}

Range* AllocateRange(Kind kind, int device, size_t bytes, CUresult* result) {
  std::unique_ptr<Physical> physical;
  if (bytes > SIZE_MAX - kGranularity) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return nullptr;
  }
  *result = NewPhysical(device, ChargedBytes(bytes), &physical);
  if (*result == CUDA_ERROR_OUT_OF_MEMORY && TrimPools(device)) {
    *result = NewPhysical(device, ChargedBytes(bytes), &physical);
  }
  if (*result != CUDA_SUCCESS) return nullptr;
  Range* range = PlaceRange(kind, std::move(physical), bytes, result);
  if (range != nullptr) Poison(*range);
  return range;
}

void FreeRange(Range* range, const char* verb) {
  ForgetRange(range->base, range->span_bytes);
  GiveAddresses(range->base, range->span_bytes);
  RemoveRange(range->base, verb);
}

}  // namespace simgpu
