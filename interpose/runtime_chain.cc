// See runtime_chain.h. Order: the next library in the global scope; else what the calling library's
// own dependencies define, because Python loads extensions (and their libcudart) in a local scope
// that RTLD_NEXT does not see.

#include "interpose/runtime_chain.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include <atomic>

namespace tidemark::interpose {
namespace {

// Answers by call site and function; call sites are few, and dladdr takes the loader's lock. Filled
// once, never changed: a pair whose place is taken is simply looked up each time. A place tells
// both apart, since any mix of the two can be that of another pair.
struct Site {
  std::atomic<bool> taken{false};
  std::atomic<const void*> address{nullptr};  // stored last
  const char* name = nullptr;
  void* function = nullptr;
};
constexpr size_t kSites = 1024;  // power of two
Site sites[kSites];

// A name stands for itself by its address: it is a literal of the one hook that asks.
Site& PlaceOf(const void* address, const char* name) {
  const uint64_t mixed = reinterpret_cast<uintptr_t>(address) ^ reinterpret_cast<uintptr_t>(name);
  return sites[(mixed * UINT64_C(0x9e3779b97f4a7c15) >> 54) & (kSites - 1)];
}

void Keep(const void* address, const char* name, void* function) {
  Site& site = PlaceOf(address, name);
  if (site.taken.exchange(true, std::memory_order_relaxed)) return;
  site.name = name;
  site.function = function;
  site.address.store(address, std::memory_order_release);
}

// The library stays open: its function's address is kept.
void* KeepOpen(void* function) {
  Dl_info info;
  if (dladdr(function, &info) != 0) dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  return function;
}

void* FromCallersLibraries(const char* name, void* own, const void* return_address) {
  Dl_info caller;
  if (dladdr(return_address, &caller) == 0) return nullptr;
  void* library = dlopen(caller.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;  // the program itself: RTLD_NEXT has answered for it
  void* function = dlsym(library, name);
  if (function == own) function = nullptr;
  if (function != nullptr) KeepOpen(function);
  dlclose(library);
  return function;
}

}  // namespace

void* NextRuntimeFunction(const char* name, void* own, const void* return_address) {
  const Site& site = PlaceOf(return_address, name);
  if (site.address.load(std::memory_order_acquire) == return_address && site.name == name) {
    return site.function;
  }
  void* function = dlsym(RTLD_NEXT, name);
  if (function == nullptr || function == own) {
    function = FromCallersLibraries(name, own, return_address);
  }
  if (function != nullptr) Keep(return_address, name, function);
  return function;
}

}  // namespace tidemark::interpose
