// A table with open addressing in memory of its own: the job's malloc may be anything.

#include "interpose/outside.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>

namespace tidemark::interpose {
namespace {

struct Entry {
  uint64_t name;
  uint64_t bytes;
  uint64_t memory;
  int32_t device;
  uint32_t kind;
  uint32_t references;  // 0: free
  uint32_t reserved;
};

constexpr size_t kFirstCapacity = 1024;  // power of two

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Entry* entries = nullptr;
size_t capacity = 0;
size_t used = 0;

size_t HomeOf(uint32_t kind, uint64_t name, size_t mask) {
  uint64_t mixed = (name ^ (uint64_t{kind} << 60)) * UINT64_C(0x9e3779b97f4a7c15);
  return static_cast<size_t>(mixed >> 32) & mask;
}

// The entry of (kind, name), or the free one where it belongs. The table is never full.
Entry* Find(Entry* table, size_t size, uint32_t kind, uint64_t name) {
  size_t at = HomeOf(kind, name, size - 1);
  while (table[at].references != 0 && (table[at].kind != kind || table[at].name != name)) {
    at = (at + 1) & (size - 1);
  }
  return &table[at];
}

bool Grow() {
  size_t size = capacity == 0 ? kFirstCapacity : 2 * capacity;
  void* memory = mmap(nullptr, size * sizeof(Entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Entry* table = static_cast<Entry*>(memory);
  for (size_t i = 0; i < capacity; ++i) {
    if (entries[i].references == 0) continue;
    *Find(table, size, entries[i].kind, entries[i].name) = entries[i];
  }
  if (entries != nullptr) munmap(entries, capacity * sizeof(Entry));
  entries = table;
  capacity = size;
  return true;
}

// Frees `hole` and moves later entries of its run up, so that searches still find them.
void Remove(Entry* hole) {
  size_t mask = capacity - 1;
  size_t empty = static_cast<size_t>(hole - entries);
  for (size_t at = (empty + 1) & mask; entries[at].references != 0; at = (at + 1) & mask) {
    size_t home = HomeOf(entries[at].kind, entries[at].name, mask);
    if (((at - home) & mask) < ((at - empty) & mask)) continue;
    entries[empty] = entries[at];
    empty = at;
  }
  entries[empty].references = 0;
  --used;
}

class Locked {
 public:
  Locked() { pthread_mutex_lock(&lock); }
  ~Locked() { pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

}  // namespace

void RememberOutside(OutsideKind kind, uint64_t name, OutsideAllocation allocation) {
  Locked locked;
  if (2 * (used + 1) > capacity && !Grow() && used + 1 >= capacity) return;
  Entry* entry = Find(entries, capacity, static_cast<uint32_t>(kind), name);
  if (entry->references == 0) ++used;
  *entry = {
      name, allocation.bytes, allocation.memory, allocation.device, static_cast<uint32_t>(kind), 1,
      0};
}

void RetainOutside(OutsideKind kind, uint64_t name) {
  Locked locked;
  if (capacity == 0) return;
  Entry* entry = Find(entries, capacity, static_cast<uint32_t>(kind), name);
  if (entry->references != 0) ++entry->references;
}

bool LookOutside(OutsideKind kind, uint64_t name, OutsideAllocation* allocation) {
  Locked locked;
  if (capacity == 0) return false;
  const Entry* entry = Find(entries, capacity, static_cast<uint32_t>(kind), name);
  if (entry->references == 0) return false;
  *allocation = {entry->bytes, entry->device, entry->memory};
  return true;
}

bool ForgetOutside(OutsideKind kind, uint64_t name, OutsideAllocation* allocation) {
  Locked locked;
  if (capacity == 0) return false;
  Entry* entry = Find(entries, capacity, static_cast<uint32_t>(kind), name);
  if (entry->references == 0 || --entry->references != 0) return false;
  *allocation = {entry->bytes, entry->device, entry->memory};
  entry->references = 1;  // still there while Remove looks at its run
  Remove(entry);
  return true;
}

void ForgetAllOutside() {
  pthread_mutex_init(&lock, nullptr);  // another thread of the parent may have held it
  if (entries != nullptr) munmap(entries, capacity * sizeof(Entry));
  entries = nullptr;
  capacity = used = 0;
}

}  // namespace tidemark::interpose
