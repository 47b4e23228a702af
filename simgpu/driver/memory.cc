// The questions that the engine asks about addresses; see memory.h.
// Thread rule: takes the driver lock.

#include "simgpu/driver/memory.h"

#include <cstdio>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/guard.h"
#include "simgpu/driver/history.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

Space SpaceOf(const Range& range) {
  switch (range.kind) {
    case Kind::kPinned:
    case Kind::kRegistered:
      return Space::kPinned;
    case Kind::kManaged:
      return Space::kManaged;
    default:
      return range.live ? Space::kDevice : Space::kHole;
  }
}

CUresult Illegal(CUdeviceptr address, const std::string& reason, std::string* why) {
  if (why != nullptr) {
    char at[40];
    std::snprintf(at, sizeof at, "address 0x%llx: ", static_cast<unsigned long long>(address));
    *why = at + reason;
  }
  return CUDA_ERROR_ILLEGAL_ADDRESS;
}

std::string NothingThere(CUdeviceptr address) {
  const std::string was = WhatWasAt(address);
  if (!was.empty()) return "nothing is there now; it was " + was;
  if (FindReservation(address) != nullptr) return "reserved, and nothing is mapped there";
  return "no device memory";
}

bool RightsAllow(const Range& range, int device, bool write) {
  auto found = range.access.find(device);
  if (found == range.access.end()) return false;
  return write ? found->second == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               : found->second != CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

// May `device` touch `range` at all, and write it if `write`?
bool Reaches(const Range& range, int device, bool write) {
  if (range.kind == Kind::kMapping) return RightsAllow(range, device, write);
  if (range.kind == Kind::kPool) {
    return range.live && (range.device == device || range.access.count(device) != 0);
  }
  if (range.device < 0 || range.device == device || range.kind == Kind::kManaged) return true;
  return PeerAccessEnabled(device, range.device);
}

CUresult CheckRange(const Range& range, int device, const Span& span, std::string* why) {
  if (Reaches(range, device, span.write)) return CUDA_SUCCESS;
  const std::string verb = span.write ? "write" : "read";
  return Illegal(span.base,
                 "device " + std::to_string(device) + " may not " + verb + " " + Describe(range) +
                     (range.live ? "" : " (not live in stream order)"),
                 why);
}

bool IsPageable(CUdeviceptr address) {
  return FindReservation(address) == nullptr && !WasDeviceAddress(address);
}

}  // namespace

Place PlaceOf(CUdeviceptr address) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  Place place;
  const Range* range = FindRange(address);
  if (range == nullptr) {
    const Reservation* reservation = FindReservation(address);
    if (reservation == nullptr && !WasDeviceAddress(address)) return place;
    place.space = Space::kHole;
    if (reservation != nullptr) {
      place.base = reservation->base;
      place.bytes = reservation->bytes;
    }
    return place;
  }
  place.space = SpaceOf(*range);
  place.device = range->device;
  place.base = range->base;
  place.bytes = range->bytes;
  place.host_backed = range->physical != nullptr && range->physical->host_backed;
  return place;
}

CUresult CheckSpan(int device, const Span& span, bool from_kernel, std::string* why) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  CUdeviceptr at = span.base;
  const CUdeviceptr end = span.base + span.bytes;
  if (end < at) return Illegal(at, "the range wraps around the address space", why);
  while (at < end) {
    const Range* range = FindRange(at);
    if (range == nullptr || at >= range->base + range->bytes) {
      const bool pageable = range == nullptr && IsPageable(at);
      if (!pageable) return Illegal(at, NothingThere(at), why);
      if (from_kernel) return Illegal(at, "pageable host memory, which kernels cannot reach", why);
      const Range* next = FindFrom(at);
      at = next == nullptr ? end : next->base;
      continue;
    }
    const Span part{at, 0, span.write};
    if (CUresult bad = CheckRange(*range, device, part, why); bad != CUDA_SUCCESS) return bad;
    at = range->base + range->bytes;
  }
  return CUDA_SUCCESS;
}

bool LooksLikeDeviceAddress(uint64_t value) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  const Range* range = FindRange(value);
  if (range != nullptr) return IsDeviceBytes(*range) || range->kind == Kind::kManaged;
  return FindReservation(value) != nullptr || WasDeviceAddress(value);
}

}  // namespace simgpu
