// Fills the slots of forward_entry.S and knows which real function belongs to which hook.

#include "interpose/resolve.h"

#include <dlfcn.h>
#include <limits.h>
#include <sched.h>
#include <string.h>

#include <atomic>

#include "hook_calls.h"
#include "interpose/log.h"
#include "interpose/options.h"

namespace {

constexpr char kNames[] =
#include "forward_names.inc"
    ;

constexpr unsigned CountNames() {
  unsigned count = 0;
  for (size_t i = 0; i + 1 < sizeof(kNames); ++i) count += kNames[i] == '\0';
  return count;
}
constexpr unsigned kSlotCount = CountNames();

}  // namespace

extern "C" {
__attribute__((visibility("hidden"))) std::atomic<void*> tidemark_slots[kSlotCount];
__attribute__((visibility("hidden"))) void* tidemark_resolve_slot(uint32_t slot);
}

namespace tidemark::interpose {
namespace {

struct Hook {
  const char* name;
  unsigned slot;
  bool required;
  void* replacement;
};

constexpr bool kIsREQUIRED = true;
constexpr bool kIsOPTIONAL = false;
const Hook kHooks[] = {
#define TIDEMARK_HOOK(name, version, need, why) \
  {#name, kSlot_##name, kIs##need, reinterpret_cast<void*>(&Hook_##name)},
#define TIDEMARK_RUNTIME_HOOK(name, why)
#include "interpose/hooks.def"
#undef TIDEMARK_HOOK
#undef TIDEMARK_RUNTIME_HOOK
};

enum State : int { kUnopened, kPublishing, kOpen, kAbsent };
std::atomic<int> state{kUnopened};
kernels::Driver published_driver;
const char* published_why = nullptr;

// What stands in a slot that the driver (or no driver at all) left empty.
CUresult NotSupported() { return CUDA_ERROR_NOT_SUPPORTED; }
CUresult NoDriver() { return CUDA_ERROR_NO_DEVICE; }

CUresult NoDriverErrorText(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *text = error == CUDA_SUCCESS           ? "no error"
          : error == CUDA_ERROR_NO_DEVICE ? "no CUDA driver was found"
                                          : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool IsStandIn(void* entry) {
  return entry == nullptr || entry == reinterpret_cast<void*>(&NotSupported) ||
         entry == reinterpret_cast<void*>(&NoDriver) ||
         entry == reinterpret_cast<void*>(&NoDriverErrorText);
}

// Programs print the text of an error without asking whether there was one.
void* StandInWithoutDriver(const char* name) {
  bool text = strcmp(name, "cuGetErrorString") == 0 || strcmp(name, "cuGetErrorName") == 0;
  return text ? reinterpret_cast<void*>(&NoDriverErrorText) : reinterpret_cast<void*>(&NoDriver);
}

void FillSlots(void* library) {
  const char* name = kNames;
  for (unsigned slot = 0; slot < kSlotCount; ++slot, name += strlen(name) + 1) {
    void* entry = library != nullptr ? dlsym(library, name) : StandInWithoutDriver(name);
    if (entry == nullptr) entry = reinterpret_cast<void*>(&NotSupported);
    tidemark_slots[slot].store(entry, std::memory_order_release);
  }
}

const char* OwnPath() {
  Dl_info info;
  return dladdr(&kHooks, &info) != 0 ? info.dli_fname : "";
}

// The real driver's handle, or null with a sentence in `why`.
void* OpenLibrary(char* why, size_t why_bytes) {
  char path[PATH_MAX];
  if (!kernels::FindDriver(OwnPath(), path, sizeof(path))) {
    Format(why, why_bytes, "no CUDA driver: libcuda.so.1 is in none of the usual places");
    return nullptr;
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    Format(why, why_bytes, "the CUDA driver cannot be opened: %s", dlerror());
    return nullptr;
  }
  if (dlsym(library, "cuInit") == reinterpret_cast<void*>(&Hook_cuInit)) {
    Format(why, why_bytes, "%s is this library, not a CUDA driver", path);
    return nullptr;
  }
  return library;
}

const char* MissingRequired(void* library, kernels::Driver* driver) {
  if (const char* missing = kernels::LoadDriver(library, driver)) return missing;
  for (const Hook& hook : kHooks) {
    if (hook.required && RealEntry(hook.slot) == nullptr) return hook.name;
  }
  return nullptr;
}

void Publish(const kernels::Driver& driver, const char* why, State outcome) {
  int expected = kUnopened;
  if (!state.compare_exchange_strong(expected, kPublishing)) return;
  published_driver = driver;
  published_why = why;
  state.store(outcome, std::memory_order_release);
}

void PublishAbsence(const char* why) {
  int expected = kUnopened;
  if (!state.compare_exchange_strong(expected, kPublishing)) return;
  Warn("%s; CUDA calls of this process return CUDA_ERROR_NO_DEVICE", why);
  published_why = "there is no CUDA driver";
  state.store(kAbsent, std::memory_order_release);
}

void Open() {
  char why[PATH_MAX + 256];
  void* library = OpenLibrary(why, sizeof(why));
  FillSlots(library);
  if (library == nullptr) return PublishAbsence(why);
  kernels::Driver driver;
  const char* missing = MissingRequired(library, &driver);
  driver.library = library;
  Publish(driver, missing, kOpen);
}

// Length of `name` without "_v2", "_ptsz" and the like.
size_t BaseLength(const char* name) {
  size_t length = strlen(name);
  auto ends = [&](const char* suffix) {
    size_t size = strlen(suffix);
    return length > size && memcmp(name + length - size, suffix, size) == 0;
  };
  if (ends("_ptsz") || ends("_ptds")) length -= 5;
  if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' && name[length - 1] >= '0' &&
      name[length - 1] <= '9') {
    length -= 3;
  }
  return length;
}

bool IsKnownEntry(void* entry) {
  for (const auto& slot : tidemark_slots) {
    if (slot.load(std::memory_order_relaxed) == entry) return true;
  }
  return false;
}

// A driver may answer a look-up with a pointer that its own export table does not hold; the loader
// then still knows the symbol that starts there.
const char* SymbolAt(void* entry) {
  Dl_info info;
  if (dladdr(entry, &info) == 0 || info.dli_saddr != entry) return nullptr;
  return info.dli_sname;
}

}  // namespace

void* RealEntry(uint32_t slot) {
  void* entry = tidemark_slots[slot].load(std::memory_order_acquire);
  if (entry == nullptr) entry = tidemark_resolve_slot(slot);
  return IsStandIn(entry) ? nullptr : entry;
}

const kernels::Driver* RealDriver(const char** why) {
  if (state.load(std::memory_order_acquire) == kUnopened) Open();
  int now;
  while ((now = state.load(std::memory_order_acquire)) == kPublishing) sched_yield();
  *why = published_why;
  return published_why == nullptr && now == kOpen ? &published_driver : nullptr;
}

bool SameBaseName(const char* left, const char* right) {
  size_t length = BaseLength(left);
  return length == BaseLength(right) && memcmp(left, right, length) == 0;
}

void* Substitute(void* real, const char* symbol) {
  bool hooked_base = false;
  for (const Hook& hook : kHooks) {
    if (!SameBaseName(hook.name, symbol)) continue;
    if (RealEntry(hook.slot) == real) return hook.replacement;
    hooked_base = true;
  }
  if (!hooked_base || IsKnownEntry(real)) return real;
  const char* found = SymbolAt(real);
  for (const Hook& hook : kHooks) {
    if (found != nullptr && strcmp(hook.name, found) == 0) return hook.replacement;
  }
  Warn("the driver has a version of %s that this build does not know; it is passed through",
       symbol);
  return real;
}

}  // namespace tidemark::interpose

void* tidemark_resolve_slot(uint32_t slot) {
  void* entry = tidemark_slots[slot].load(std::memory_order_acquire);
  if (entry != nullptr) return entry;
  tidemark::interpose::Open();
  return tidemark_slots[slot].load(std::memory_order_acquire);
}
