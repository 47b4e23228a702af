// Accounting of the node: which process holds which memory, and when its capacity returns.
// Thread rule: callers hold the driver lock (see node.h).

#include "simgpu/driver/node.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "simgpu/driver/node_stale.h"
#include "simgpu/driver/node_table.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

constexpr int kNoSlot = -1;
int g_slot = kNoSlot;
void* g_presence = nullptr;  // keeps the lock on our holder file for as long as the process lives
uint64_t g_allocated_bytes = 0;

std::string HolderFile(int slot) {
  return NodePath() + "p" + std::to_string(slot) + "-" +
         std::to_string(NodeTable()->processes[slot].serial);
}

std::string MemoryFile(const TableEntry& entry) {
  char name[64];
  std::snprintf(name, sizeof name, "m%d-%llx", entry.device,
                static_cast<unsigned long long>(entry.id));
  return NodePath() + name;
}

TableEntry* EntryOf(uint64_t id) {
  TableEntry& entry = NodeTable()->entries[id % kTableEntries];
  return id != 0 && entry.device != kEntryFree && entry.id == id ? &entry : nullptr;
}

void DropEntry(TableEntry* entry) {
  Table* table = NodeTable();
  if (entry->device >= 0) table->used[entry->device] -= entry->bytes;
  table->orphans -= entry->orphan;
  auto index = static_cast<uint32_t>(entry - table->entries);
  if (index < table->first_free) table->first_free = index;
  *entry = TableEntry{};
  entry->device = kEntryFree;
}

// True if nobody has the file open with a lock any more; it is removed then.
bool RemoveIfUnheld(const std::string& file) {
  int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT;
  bool unheld = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (unheld) unlink(file.c_str());
  close(fd);
  return unheld;
}

void CollectEntry(TableEntry* entry) {
  if (RemoveIfUnheld(MemoryFile(*entry))) {
    DropEntry(entry);
  } else if (entry->orphan == 0) {
    entry->orphan = 1;  // a descriptor of it is on its way to somebody
    ++NodeTable()->orphans;
  }
}

void CollectOrphans() {
  Table* table = NodeTable();
  for (uint32_t i = 0; i < table->entry_limit && table->orphans > 0; ++i) {
    TableEntry& entry = table->entries[i];
    if (entry.device != kEntryFree && entry.orphan != 0) CollectEntry(&entry);
  }
}

void ForgetProcess(int slot) {
  Table* table = NodeTable();
  for (uint32_t i = 0; i < table->entry_limit; ++i) {
    TableEntry& entry = table->entries[i];
    if (entry.device == kEntryFree || entry.orphan != 0) continue;
    entry.holders.Clear(slot);
    if (entry.holders.Empty()) CollectEntry(&entry);
  }
  table->processes[slot] = TableProcess{};
}

void SweepDeadProcesses() {
  for (int slot = 0; slot < kTableProcesses; ++slot) {
    if (slot == g_slot || NodeTable()->processes[slot].serial == 0) continue;
    if (RemoveIfUnheld(HolderFile(slot))) ForgetProcess(slot);
  }
  CollectOrphans();
}

bool OtherProcess(int self) {
  for (int slot = 0; slot < kTableProcesses; ++slot) {
    if (slot != self && NodeTable()->processes[slot].serial != 0) return true;
  }
  return false;
}

int TakeSlot() {
  Table* table = NodeTable();
  for (int slot = 0; slot < kTableProcesses; ++slot) {
    if (table->processes[slot].serial != 0) continue;
    table->processes[slot] = {++table->last_serial, getpid()};
    return slot;
  }
  return kNoSlot;
}

// A mapping keeps an open file description, and so its lock, without using a descriptor that the
// program might close; MADV_DONTFORK keeps it out of children.
void* HoldByMapping(int fd) {
  void* at = mmap(nullptr, 4096, PROT_NONE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return nullptr;
  madvise(at, 4096, MADV_DONTFORK);
  return at;
}

bool ShowPresence() {
  int fd = open(HolderFile(g_slot).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0) g_presence = HoldByMapping(fd);
  close(fd);
  return g_presence != nullptr;
}

TableEntry* NewEntry(int device, size_t bytes) {
  Table* table = NodeTable();
  uint32_t index = table->first_free;
  while (index < kTableEntries && table->entries[index].device != kEntryFree) ++index;
  table->first_free = index;
  if (index == kTableEntries) return nullptr;
  if (index >= table->entry_limit) table->entry_limit = index + 1;
  TableEntry& entry = table->entries[index];
  entry = TableEntry{};
  entry.id = (++table->last_serial) * kTableEntries + index;
  entry.bytes = bytes;
  entry.holders.Set(g_slot);
  entry.device = device;
  if (device >= 0) table->used[device] += bytes;
  return &entry;
}

bool FitsCapacity(int device, size_t bytes) {
  if (device < 0) return true;
  return bytes <= GetConfig().memory_bytes &&
         NodeTable()->used[device] <= GetConfig().memory_bytes - bytes;
}

CUresult ReserveEntry(int device, size_t bytes, NodeMemory* memory) {
  TableLock lock;
  if (!lock.ok()) return CUDA_ERROR_OPERATING_SYSTEM;
  if (!FitsCapacity(device, bytes)) SweepDeadProcesses();
  if (!FitsCapacity(device, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  TableEntry* entry = NewEntry(device, bytes);
  if (entry == nullptr) {
    LogAlways("the node holds %u allocations already, its most", kTableEntries);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *memory = {entry->id, device, bytes};
  return CUDA_SUCCESS;
}

void CancelEntry(uint64_t id) {
  TableLock lock;
  if (!lock.ok()) return;
  TableEntry* entry = EntryOf(id);
  if (entry == nullptr) return;
  unlink(MemoryFile(*entry).c_str());
  DropEntry(entry);
}

// The whole size is allocated now: a full file system must be an error here, not a SIGBUS later.
bool FillFile(int fd, size_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return true;
  LogAlways("%s has no room for %zu bytes of memory: %s", NodePath().c_str(), bytes,
            strerror(error));
  return false;
}

int MakeFile(uint64_t id, size_t bytes) {
  TableEntry* entry = EntryOf(id);
  int fd = open(MemoryFile(*entry).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  struct stat info = {};
  if (fd < 0) {
    LogAlways("cannot make %s: %s", MemoryFile(*entry).c_str(), strerror(errno));
    return -1;
  }
  if (flock(fd, LOCK_SH) != 0 || !FillFile(fd, bytes) || fstat(fd, &info) != 0) {
    close(fd);
    return -1;
  }
  entry->inode = info.st_ino;
  return fd;
}

TableEntry* EntryOfFile(int fd) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return nullptr;
  for (uint32_t i = 0; i < NodeTable()->entry_limit; ++i) {
    TableEntry& entry = NodeTable()->entries[i];
    if (entry.device == kEntryFree || entry.inode != info.st_ino) continue;
    struct stat named = {};
    bool same = stat(MemoryFile(entry).c_str(), &named) == 0 && named.st_dev == info.st_dev &&
                named.st_ino == info.st_ino;
    if (same) return &entry;
  }
  return nullptr;
}

// Under the table lock, so that nobody collects the file between its opening and its locking.
CUresult Adopt(TableEntry* entry, NodeMemory* memory, int* own_fd) {
  if (entry == nullptr || entry->inode == 0) return CUDA_ERROR_INVALID_VALUE;
  int fd = open(MemoryFile(*entry).c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OPERATING_SYSTEM;
  if (flock(fd, LOCK_SH | LOCK_NB) != 0) {
    close(fd);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  entry->holders.Set(g_slot);
  NodeTable()->orphans -= entry->orphan;
  entry->orphan = 0;
  *memory = {entry->id, entry->device, entry->bytes};
  *own_fd = fd;
  return CUDA_SUCCESS;
}

// Removes what is left if no other process uses the node. Memory that a descriptor in flight still
// holds stays, with the table, for the process that will adopt it. While others are there nothing
// is done: they find this process dead soon, and collect what it held then.
__attribute__((destructor)) void LeaveNode() {
  if (!Initialized() || g_slot == kNoSlot) return;
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  TableLock lock;
  if (!lock.ok()) return;
  SweepDeadProcesses();
  const int slot = g_slot;
  if (OtherProcess(slot)) return;
  g_slot = kNoSlot;
  unlink(HolderFile(slot).c_str());
  NodeTable()->processes[slot] = TableProcess{};
  bool empty = true;
  for (uint32_t i = 0; i < NodeTable()->entry_limit; ++i) {
    TableEntry& entry = NodeTable()->entries[i];
    if (entry.device == kEntryFree) continue;
    if (entry.orphan != 0) {
      empty = false;
      continue;
    }
    unlink(MemoryFile(entry).c_str());
    DropEntry(&entry);
  }
  if (!empty) return;
  const std::string& folder = NodePath();
  UnlinkTable();
  rmdir(folder.c_str());
  // The default folder has a parent of ours; it goes when no other node is in it.
  if (GetConfig().directory.empty()) {
    rmdir(folder.substr(0, folder.find_last_of('/', folder.size() - 2)).c_str());
  }
}

}  // namespace

CUresult JoinNode() {
  RemoveStaleNodes();
  std::string directory = NodeDirectory();
  if (directory.empty()) return CUDA_ERROR_OPERATING_SYSTEM;
  int fd = -1;
  if (MapTable(directory, &fd) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  NodeTable()->dirty = 1;
  SweepDeadProcesses();
  g_slot = TakeSlot();
  CUresult outcome = CUDA_SUCCESS;
  if (g_slot == kNoSlot) {
    LogAlways("%d processes use the node in %s already, its most", kTableProcesses,
              directory.c_str());
    outcome = CUDA_ERROR_DEVICE_UNAVAILABLE;
  } else if (!ShowPresence()) {
    LogAlways("cannot make files in %s: %s", directory.c_str(), strerror(errno));
    outcome = CUDA_ERROR_OPERATING_SYSTEM;
  }
  NodeTable()->dirty = 0;
  // The table's mapping keeps the description, and with it the lock, alive past close.
  flock(fd, LOCK_UN);
  close(fd);
  return outcome;
}

CUresult CreateNodeMemory(int device, size_t bytes, NodeMemory* memory, int* fd) {
  if (g_slot == kNoSlot) return CUDA_ERROR_DEINITIALIZED;
  uint64_t most = GetConfig().out_of_memory_after_bytes;
  if (device >= 0 && most != 0 && g_allocated_bytes + bytes > most) return CUDA_ERROR_OUT_OF_MEMORY;
  if (CUresult taken = ReserveEntry(device, bytes, memory); taken != CUDA_SUCCESS) return taken;
  *fd = MakeFile(memory->id, bytes);
  if (*fd < 0) {
    CancelEntry(memory->id);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (device >= 0) g_allocated_bytes += bytes;
  return CUDA_SUCCESS;
}

CUresult AdoptNodeMemory(int fd, NodeMemory* memory, int* own_fd) {
  if (g_slot == kNoSlot) return CUDA_ERROR_DEINITIALIZED;
  TableLock lock;
  if (!lock.ok()) return CUDA_ERROR_OPERATING_SYSTEM;
  return Adopt(EntryOfFile(fd), memory, own_fd);
}

CUresult AdoptNodeMemory(uint64_t id, NodeMemory* memory, int* own_fd) {
  if (g_slot == kNoSlot) return CUDA_ERROR_DEINITIALIZED;
  TableLock lock;
  if (!lock.ok()) return CUDA_ERROR_OPERATING_SYSTEM;
  return Adopt(EntryOf(id), memory, own_fd);
}

int OpenNodeMemory(uint64_t id, bool hold) {
  if (NodeTable() == nullptr) return -1;
  TableEntry* entry = EntryOf(id);
  if (entry == nullptr) return -1;
  int fd = open(MemoryFile(*entry).c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0 && hold && flock(fd, LOCK_SH | LOCK_NB) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

void ReleaseNodeMemory(uint64_t id) {
  if (g_slot == kNoSlot) return;
  TableLock lock;
  if (!lock.ok()) return;
  TableEntry* entry = EntryOf(id);
  if (entry == nullptr) return;
  entry->holders.Clear(g_slot);
  if (entry->holders.Empty()) CollectEntry(entry);
}

uint64_t NodeUsedBytes(int device) {
  TableLock lock;
  if (!lock.ok()) return 0;
  SweepDeadProcesses();
  return NodeTable()->used[device];
}

uint64_t NodeIdentity() { return NodeTable() == nullptr ? 0 : NodeTable()->identity; }

}  // namespace simgpu
