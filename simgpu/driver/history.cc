// The ring of ranges that went away; see history.h. Thread rule: callers hold the driver lock.

#include "simgpu/driver/history.h"

#include <cstdio>
#include <deque>

namespace simgpu {
namespace {

constexpr size_t kKept = 4096;

struct Gone {
  CUdeviceptr base;
  size_t bytes;
  bool device;
  std::string sentence;
};

std::deque<Gone>& Ring() {
  static auto* ring = new std::deque<Gone>;
  return *ring;
}

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kPlain:
      return "a plain allocation";
    case Kind::kPool:
      return "a pool allocation";
    case Kind::kIpc:
      return "an IPC import";
    case Kind::kMapping:
      return "a VMM mapping";
    case Kind::kVariable:
      return "a device variable";
    case Kind::kPinned:
      return "pinned host memory";
    case Kind::kRegistered:
      return "registered host memory";
    case Kind::kManaged:
      return "managed memory";
  }
  return "memory";
}

const Gone* Find(CUdeviceptr address) {
  for (auto gone = Ring().rbegin(); gone != Ring().rend(); ++gone) {
    if (address >= gone->base && address < gone->base + gone->bytes) return &*gone;
  }
  return nullptr;
}

}  // namespace

std::string Describe(const Range& range) {
  char text[160];
  std::snprintf(text, sizeof text, "%s of %zu bytes at 0x%llx", NameOf(range.kind), range.bytes,
                static_cast<unsigned long long>(range.base));
  std::string sentence = text;
  if (range.device >= 0) sentence += " on device " + std::to_string(range.device);
  return sentence;
}

void Remember(const Range& range, const char* verb) {
  if (Ring().size() == kKept) Ring().pop_front();
  const bool host = range.kind == Kind::kPinned || range.kind == Kind::kRegistered;
  const bool device = !host && InOwnWindow(range.base);
  Ring().push_back({range.base, range.span_bytes, device, Describe(range) + ", " + verb});
}

std::string WhatWasAt(CUdeviceptr address) {
  const Gone* gone = Find(address);
  return gone == nullptr ? std::string() : gone->sentence;
}

bool WasDeviceAddress(CUdeviceptr address) {
  const Gone* gone = Find(address);
  return gone != nullptr && gone->device;
}

}  // namespace simgpu
