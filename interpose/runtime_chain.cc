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

// Answers by call site; call sites are few, and dladdr takes the loader's lock. Filled once, never
// changed: a site whose place is taken is simply looked up each time.
struct Site {
  std::atomic<uintptr_t> key{0};
  std::atomic<void*> function{nullptr};
};
constexpr size_t kSites = 1024;  // power of two
Site sites[kSites];

size_t PlaceOf(uintptr_t key) {
  return static_cast<size_t>((key * UINT64_C(0x9e3779b97f4a7c15)) >> 54) & (kSites - 1);
}

void Keep(uintptr_t key, void* function) {
  Site& site = sites[PlaceOf(key)];
  void* empty = nullptr;
  if (site.function.compare_exchange_strong(empty, function)) {
    site.key.store(key, std::memory_order_release);
  }
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
  // One key for site and function: a return address follows a call of one function only.
  uintptr_t key = reinterpret_cast<uintptr_t>(return_address) ^ reinterpret_cast<uintptr_t>(own);
  const Site& site = sites[PlaceOf(key)];
  if (site.key.load(std::memory_order_acquire) == key) {
    return site.function.load(std::memory_order_relaxed);
  }
  void* function = dlsym(RTLD_NEXT, name);
  if (function == nullptr || function == own) {
    function = FromCallersLibraries(name, own, return_address);
  }
  if (function != nullptr) Keep(key, function);
  return function;
}

}  // namespace tidemark::interpose
