// Layout of the node's table file, mapped by every process of the node and changed only under its
// flock. A process that dies inside a change leaves `dirty` set; the next one recomputes the sums.
// Thread rule: none of its own; see node.h.

#ifndef SIMGPU_DRIVER_NODE_TABLE_H_
#define SIMGPU_DRIVER_NODE_TABLE_H_

#include <cstdint>
#include <string>

namespace simgpu {

constexpr uint64_t kTableMagic = 0x32303054474d4953;  // "SIMGT002"
constexpr int kTableProcesses = 128;
constexpr uint32_t kTableEntries = 1 << 16;
constexpr int kTableDevices = 16;
constexpr int32_t kEntryFree = -2;

struct HolderSet {
  uint64_t words[kTableProcesses / 64];

  bool Empty() const {
    uint64_t all = 0;
    for (uint64_t word : words) all |= word;
    return all == 0;
  }
  void Set(int slot) { words[slot / 64] |= uint64_t{1} << (slot % 64); }
  void Clear(int slot) { words[slot / 64] &= ~(uint64_t{1} << (slot % 64)); }
};

struct TableEntry {
  uint64_t id;
  uint64_t bytes;
  uint64_t inode;   // 0 until the file exists
  int32_t device;   // kEntryFree, kHostMemory or an ordinal; written last
  uint32_t orphan;  // 1: no process holds it, but its file was still locked when last tried
  HolderSet holders;
};

struct TableProcess {
  uint64_t serial;  // 0: the slot is free
  int64_t pid;      // for messages only; liveness is the lock on the holder file
};

struct Table {
  uint64_t magic;
  uint64_t identity;
  uint64_t memory_bytes;
  int32_t devices;
  uint32_t dirty;
  uint64_t last_serial;
  uint64_t used[kTableDevices];
  uint32_t entry_limit;  // entries at and above it were never used
  uint32_t first_free;   // no free entry below it
  uint32_t orphans;
  uint32_t reserved;
  TableProcess processes[kTableProcesses];
  TableEntry entries[kTableEntries];
};

// Where the node of this process lives, made if need be. Empty and a logged sentence on failure.
std::string NodeDirectory();

// While one lives, no other process reads or changes the table. `ok()` is false, after one logged
// sentence, when the directory has been removed under the process.
class TableLock {
 public:
  TableLock();
  ~TableLock();
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Opens, makes or rejects the table file and maps it; returns it locked by `*fd`, or null after a
// logged sentence.
Table* MapTable(const std::string& directory, int* fd);
Table* NodeTable();             // null before MapTable and after UnlinkTable
const std::string& NodePath();  // the directory, with a slash at the end
void UnlinkTable();             // under the lock, by the last process
void RecomputeSums(Table* table);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_NODE_TABLE_H_
