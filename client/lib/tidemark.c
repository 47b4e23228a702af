// libtidemark's calls: look the preloaded library's table up and translate. Holds no state but that
// look-up. Threads: any; the table is found at most a few times and never changes.

#include <dlfcn.h>
#include <string.h>

#include "proto/hints.h"
#include "tidemark/tidemark.h"

#define FULL_SIZE ((uint32_t)sizeof(struct tm_hooks_v1))

// The preloaded library is in the global scope from the start of the process, or never.
static const struct tm_hooks_v1* Hooks(void) {
  static const struct tm_hooks_v1* found;
  static int looked;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    found = (const struct tm_hooks_v1*)dlsym(RTLD_DEFAULT, TM_HINTS_SYMBOL);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  return found;
}

static int Status(int outcome) {
  switch (outcome) {
    case TM_HINTS_DONE:
      return TM_OK;
    case TM_HINTS_KEPT:
      return TM_NOT_USED_YET;
    case TM_HINTS_INACTIVE:
      return TM_INACTIVE;
    case TM_HINTS_NOT_MANAGED:
      return TM_NOT_MANAGED;
    case TM_HINTS_IN_PART:
      return TM_IN_PART;
    default:
      return TM_BAD_ARGUMENT;
  }
}

uint32_t tm_version(void) { return (uint32_t)TM_VERSION_MAJOR << 16 | TM_VERSION_MINOR; }

const char* tm_status_text(int status) {
  switch (status) {
    case TM_OK:
      return "done";
    case TM_NOT_USED_YET:
      return "accepted; this version of Tidemark does not act on it yet";
    case TM_NOT_UNDER_TIDEMARK:
      return "this process does not run under Tidemark (start it with `tidemark run`)";
    case TM_INACTIVE:
      return "Tidemark is switched off in this process, or it made no CUDA call yet";
    case TM_NOT_MANAGED:
      return "no live buffer of Tidemark's is at this address";
    case TM_BAD_ARGUMENT:
      return "an argument is out of range";
    case TM_IN_PART:
      return "done as far as the budget, or a capture in progress, allowed";
    case TM_TOO_OLD:
      return "the loaded Tidemark is older than this call";
    default:
      return "not a status of this version";
  }
}

int tm_active(void) {
  uint64_t count = 0;
  const struct tm_hooks_v1* hooks = Hooks();
  if (hooks == NULL) return TM_NOT_UNDER_TIDEMARK;
  if (hooks->size < FULL_SIZE) return TM_TOO_OLD;
  return Status(hooks->devices(NULL, 0, &count));
}

#define CALL(function, ...)                        \
  const struct tm_hooks_v1* hooks = Hooks();       \
  if (hooks == NULL) return TM_NOT_UNDER_TIDEMARK; \
  if (hooks->size < FULL_SIZE) return TM_TOO_OLD;  \
  return Status(hooks->function(__VA_ARGS__))

int tm_mark_step(void) { CALL(step); }

int tm_mark_phase(int phase) { CALL(phase, (uint32_t)phase); }

int tm_register(const void* buffer, size_t bytes, int buffer_class) {
  CALL(register_buffer, (uintptr_t)buffer, bytes, (uint32_t)buffer_class);
}

int tm_will_use(const void* buffer, size_t bytes) { CALL(will_use, (uintptr_t)buffer, bytes); }

int tm_done_with(const void* buffer, size_t bytes) { CALL(done_with, (uintptr_t)buffer, bytes); }

int tm_pin(const void* buffer, size_t bytes) { CALL(pin, (uintptr_t)buffer, bytes); }

int tm_unpin(const void* buffer, size_t bytes) { CALL(unpin, (uintptr_t)buffer, bytes); }

static void FromDevice(const struct tm_hints_device* from, tm_device_memory* to) {
  memset(to, 0, sizeof(*to));
  to->device = from->device;
  to->under_daemon = from->attached;
  to->budget_bytes = from->budget_bytes;
  to->requested_bytes = from->requested_bytes;
  to->allocated_bytes = from->allocated_bytes;
  to->reserved_bytes = from->reserved_bytes;
  to->host_resident_bytes = from->host_resident_bytes;
  to->pinned_bytes = from->pinned_bytes;
  to->peak_reserved_bytes = from->peak_reserved_bytes;
  to->moved_out_bytes = from->moved_out_bytes;
  to->moved_in_bytes = from->moved_in_bytes;
  to->stall_ns = from->stall_ns;
  to->launches = from->launches;
  to->steps = from->steps;
}

static void FromBuffer(const struct tm_hints_buffer* from, tm_buffer_memory* to) {
  memset(to, 0, sizeof(*to));
  to->address = (const void*)(uintptr_t)from->address;
  to->bytes = from->bytes;
  to->id = from->id;
  to->host_bytes = from->host_bytes;
  to->last_use = from->last_use;
  to->device = from->device;
  to->buffer_class = from->buffer_class;
  to->pinned = from->pinned;
}

// The seam's entries are smaller than the caller's, so they are taken into the end of the caller's
// own array and translated from its start; no entry is overwritten before it was read.
#define TAKE(seam_type, own_type, ask, translate)                                              \
  const struct tm_hooks_v1* hooks = Hooks();                                                   \
  if (count == NULL || (out == NULL && room != 0)) return TM_BAD_ARGUMENT;                     \
  *count = 0;                                                                                  \
  if (hooks == NULL) return TM_NOT_UNDER_TIDEMARK;                                             \
  if (hooks->size < FULL_SIZE) return TM_TOO_OLD;                                              \
  _Static_assert(sizeof(seam_type) < sizeof(own_type) && sizeof(own_type) % 8 == 0, "layout"); \
  seam_type* taken = room == 0 ? NULL : (seam_type*)(out + room) - room;                       \
  uint64_t there = 0;                                                                          \
  const int status = Status(hooks->ask(taken, room, &there));                                  \
  for (size_t i = 0; status == TM_OK && i < room && i < there; ++i) {                          \
    seam_type entry;                                                                           \
    memcpy(&entry, taken + i, sizeof(entry));                                                  \
    translate(&entry, out + i);                                                                \
  }                                                                                            \
  *count = (size_t)there;                                                                      \
  return status

int tm_snapshot_devices(tm_device_memory* out, size_t room, size_t* count) {
  TAKE(struct tm_hints_device, tm_device_memory, devices, FromDevice);
}

int tm_snapshot_buffers(tm_buffer_memory* out, size_t room, size_t* count) {
  TAKE(struct tm_hints_buffer, tm_buffer_memory, buffers, FromBuffer);
}
