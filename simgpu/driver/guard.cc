// The guard of device bytes; see guard.h and DeviceBytes in memory.h.
// Thread rule: takes the driver lock. With mprotect, open bytes are open to every thread of the
// process while a DeviceBytes lives; protection keys are per thread.

#include "simgpu/driver/guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "simgpu/driver/memory.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

enum class Mode { kOff, kKeys, kProtect };

int g_key = -1;
int g_open = 0;  // DeviceBytes alive, over all threads (mprotect)
thread_local int t_open = 0;

Mode Choose() {
  const std::string& wanted = GetConfig().guard;
  if (wanted == "off") return Mode::kOff;
  if (wanted == "mprotect") return Mode::kProtect;
  g_key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (g_key >= 0) return Mode::kKeys;
  if (wanted == "pkey") {
    LogAlways(
        "guard=pkey: this processor or kernel has no protection keys; device bytes are not "
        "guarded (accepted instead: mprotect, off)");
  } else {
    LogVerbose(
        "guard=auto: no protection keys here; host code that touches device memory does not "
        "fault (guard=mprotect makes it fault, slowly)");
  }
  return Mode::kOff;
}

Mode GuardMode() {
  static const Mode mode = Choose();
  return mode;
}

int Rights(const Range& range) {
  if (range.kind != Kind::kMapping) return PROT_READ | PROT_WRITE;
  int rights = PROT_NONE;
  for (const auto& [device, flags] : range.access) {
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_READ) rights |= PROT_READ;
    if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) rights |= PROT_READ | PROT_WRITE;
  }
  return rights;
}

// The host may dereference managed memory, and host memory that was mapped with access for it.
bool OpenToHost(const Range& range) {
  return !IsDeviceBytes(range) || range.access.count(kHostMemory) != 0;
}

void ProtectAll() {
  ForEachRange([](const Range& range) {
    if (IsDeviceBytes(range)) ApplyProtection(range);
  });
}

}  // namespace

bool IsDeviceBytes(const Range& range) {
  return range.kind == Kind::kPlain || range.kind == Kind::kPool || range.kind == Kind::kIpc ||
         range.kind == Kind::kMapping || range.kind == Kind::kVariable;
}

bool ApplyProtection(const Range& range) {
  auto* at = reinterpret_cast<void*>(range.base);
  const int rights = Rights(range);
  if (GuardMode() == Mode::kKeys) {
    // Plain mprotect would leave the key that the bytes had before they were opened to the host.
    return pkey_mprotect(at, range.span_bytes, rights, OpenToHost(range) ? 0 : g_key) == 0;
  }
  const bool shut = GuardMode() == Mode::kProtect && g_open == 0 && !OpenToHost(range);
  return mprotect(at, range.span_bytes, shut ? PROT_NONE : rights) == 0;
}

bool MapBytes(const Range& range, const Physical& physical) {
  auto* at = reinterpret_cast<void*>(range.base);
  const int fd = OpenNodeMemory(physical.memory.id, false);
  if (fd < 0) return false;
  void* mapped = mmap(at, range.span_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
  const int error = errno;
  close(fd);
  if (mapped == MAP_FAILED) {
    LogAlways("cannot map device memory: %s (see vm.max_map_count)", strerror(error));
    return false;
  }
  // A child of fork has no device; its copy of the mapping would only keep the memory.
  madvise(mapped, range.span_bytes, MADV_DONTFORK);
  return ApplyProtection(range);
}

bool UnmapBytes(CUdeviceptr base, size_t bytes) {
  return mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

DeviceBytes::DeviceBytes() {
  const Mode mode = GuardMode();
  if (mode == Mode::kKeys && t_open++ == 0) pkey_set(g_key, 0);
  if (mode != Mode::kProtect) return;
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  if (g_open++ == 0) ProtectAll();
}

DeviceBytes::~DeviceBytes() {
  const Mode mode = GuardMode();
  if (mode == Mode::kKeys && --t_open == 0) pkey_set(g_key, PKEY_DISABLE_ACCESS);
  if (mode != Mode::kProtect) return;
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  if (--g_open == 0) ProtectAll();
}

}  // namespace simgpu
