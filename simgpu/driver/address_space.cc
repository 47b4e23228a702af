// Ranges, reservations and history of the device address space; see address_space.h.
// Thread rule: callers hold the driver lock.

#include "simgpu/driver/address_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/history.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

// Addresses that nobody else is given: the kernel places libraries and heaps elsewhere unless
// asked, so an address freed here stays recognisable as a device's. The first window is inside what
// AddressSanitizer calls high memory; ThreadSanitizer refuses it and allows the second.
struct Window {
  CUdeviceptr begin;
  CUdeviceptr end;
  CUdeviceptr next;
  bool refused = false;
};

Window g_windows[] = {{0x300000000000, 0x500000000000, 0x300000000000},
                      {0x550000000000, 0x555000000000, 0x550000000000}};
constexpr int kTriesInWindow = 16;

void* Reserve(CUdeviceptr hint, size_t bytes) {
  return mmap(reinterpret_cast<void*>(hint), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// `bytes` at the window's next free place, or MAP_FAILED where the kernel grants none of a few.
void* ReserveIn(Window* window, size_t bytes) {
  if (window->refused || bytes >= window->end - window->begin) return MAP_FAILED;
  for (int tries = 0; tries < kTriesInWindow; ++tries) {
    if (bytes > window->end - window->next) window->next = window->begin;
    const CUdeviceptr hint = window->next;
    // A hole between neighbours: an overrun must meet nothing instead of somebody's bytes.
    window->next = std::min(window->end, (hint + bytes + 2 * kGranularity) & ~(kGranularity - 1));
    void* at = Reserve(hint, bytes);
    if (at == MAP_FAILED || at == reinterpret_cast<void*>(hint)) return at;
    munmap(at, bytes);
  }
  window->refused = true;
  return MAP_FAILED;
}

// Without a window's help the kernel chooses.
void* ReserveAnywhere(size_t bytes) {
  for (Window& window : g_windows) {
    if (void* at = ReserveIn(&window, bytes); at != MAP_FAILED) return at;
  }
  return Reserve(0, bytes);
}

uint64_t NextBufferId() {
  static uint64_t last = 0;
  return ++last;
}

}  // namespace

CUdeviceptr TakeAddresses(size_t bytes, size_t alignment, CUdeviceptr hint) {
  const size_t slack = alignment > 4096 ? alignment : 0;
  if (bytes > SIZE_MAX - slack) return 0;
  void* at = hint == 0 ? ReserveAnywhere(bytes + slack) : Reserve(hint, bytes + slack);
  if (at == MAP_FAILED) return 0;
  const auto got = reinterpret_cast<CUdeviceptr>(at);
  const CUdeviceptr base = slack == 0 ? got : (got + alignment - 1) / alignment * alignment;
  if (base > got) munmap(at, base - got);
  const size_t behind = got + bytes + slack - (base + bytes);
  if (behind > 0) munmap(reinterpret_cast<void*>(base + bytes), behind);
  return base;
}

bool InOwnWindow(CUdeviceptr address) {
  for (const Window& window : g_windows) {
    if (address >= window.begin && address < window.end) return true;
  }
  return false;
}

void GiveAddresses(CUdeviceptr base, size_t bytes) { munmap(reinterpret_cast<void*>(base), bytes); }

std::map<CUdeviceptr, Range>& Ranges() {
  static auto* ranges = new std::map<CUdeviceptr, Range>;
  return *ranges;
}

Range* FindFrom(CUdeviceptr address) {
  auto after = Ranges().upper_bound(address);
  if (after != Ranges().begin()) {
    Range& before = std::prev(after)->second;
    if (address < before.base + before.span_bytes) return &before;
  }
  return after == Ranges().end() ? nullptr : &after->second;
}

Range* FindRange(CUdeviceptr address) {
  Range* range = FindFrom(address);
  return range != nullptr && range->base <= address ? range : nullptr;
}

Range* AddRange(Range range) {
  range.buffer_id = NextBufferId();
  if (range.span_bytes == 0) range.span_bytes = range.bytes;
  const CUdeviceptr base = range.base;
  return &(Ranges()[base] = std::move(range));
}

Range RemoveRange(CUdeviceptr base, const char* verb) {
  auto found = Ranges().find(base);
  Range range = std::move(found->second);
  Ranges().erase(found);
  Remember(range, verb);
  return range;
}

std::map<CUdeviceptr, Reservation>& Reservations() {
  static auto* reservations = new std::map<CUdeviceptr, Reservation>;
  return *reservations;
}

Reservation* FindReservation(CUdeviceptr address) {
  auto after = Reservations().upper_bound(address);
  if (after == Reservations().begin()) return nullptr;
  Reservation& before = std::prev(after)->second;
  return address < before.base + before.bytes ? &before : nullptr;
}

void DropContextMemory(CUcontext context) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  std::vector<CUdeviceptr> mine;
  ForEachRange([&](const Range& range) {
    if (range.owner == context) mine.push_back(range.base);
  });
  for (CUdeviceptr base : mine) {
    Range range = RemoveRange(base, "freed with its context");
    ForgetRange(range.base, range.span_bytes);
    if (range.kind != Kind::kRegistered) GiveAddresses(range.base, range.span_bytes);
  }
}

}  // namespace simgpu
