// The table file: where it lives, how it is made, mapped and locked. What its entries mean is in
// node.cc.
// Thread rule: callers hold the driver lock.

#include "simgpu/driver/node_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

Table* g_table = nullptr;
ino_t g_inode = 0;

std::string& Path() {
  static auto* path = new std::string;
  return *path;
}

int LockFile(int fd) {
  int done = 0;
  do {
    done = flock(fd, LOCK_EX);
  } while (done != 0 && errno == EINTR);
  return done;
}

// 0, or the error of the first folder that cannot be made, which is named.
int TryFolders(const std::string& path, mode_t mode, std::string* failed) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    *failed = path.substr(0, slash);
    if (mkdir(failed->c_str(), mode) != 0 && errno != EEXIST) return errno;
    if (slash == std::string::npos) return 0;
  }
}

// A leaving process may remove a parent that was just there: then it is made again.
bool MakeFolders(const std::string& path, mode_t mode) {
  constexpr int kAttempts = 100;
  std::string failed;
  int error = ENOENT;
  for (int i = 0; i < kAttempts && error == ENOENT; ++i) error = TryFolders(path, mode, &failed);
  if (error == 0) return true;
  LogAlways("cannot make the node's folder %s: %s", failed.c_str(), strerror(error));
  return false;
}

bool HoldsDevices(const char* root) {
  struct statvfs info = {};
  if (statvfs(root, &info) != 0 || access(root, W_OK) != 0) return false;
  uint64_t wanted = GetConfig().memory_bytes * static_cast<uint64_t>(GetConfig().devices);
  return static_cast<uint64_t>(info.f_blocks) * info.f_frsize >= wanted;
}

bool MakeTable(int fd) {
  if (int error = posix_fallocate(fd, 0, sizeof(Table)); error != 0) {
    LogAlways("cannot make the node's table in %s: %s", Path().c_str(), strerror(error));
    return false;
  }
  return true;
}

void FillTable(Table* table) {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  table->identity = static_cast<uint64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
  table->identity ^= static_cast<uint64_t>(getpid()) << 40;
  table->memory_bytes = GetConfig().memory_bytes;
  table->devices = GetConfig().devices;
  for (TableEntry& entry : table->entries) entry.device = kEntryFree;
  table->magic = kTableMagic;
}

bool TableFits(const Table& table) {
  if (table.magic != kTableMagic) {
    LogAlways("%stable is of another version; remove the folder when no process uses it",
              Path().c_str());
    return false;
  }
  if (table.devices == GetConfig().devices && table.memory_bytes == GetConfig().memory_bytes) {
    return true;
  }
  LogAlways(
      "the node in %s has devices=%d,memory=%llu; this process asks for devices=%d,memory=%llu. "
      "Give both the same, or another directory",
      Path().c_str(), table.devices, static_cast<unsigned long long>(table.memory_bytes),
      GetConfig().devices, static_cast<unsigned long long>(GetConfig().memory_bytes));
  return false;
}

// The last process of a node removes the table; whoever waited for its lock then has to make a new
// one.
// It removes the folder too, which may have been there a moment ago.
int OpenLocked(const std::string& folder) {
  const mode_t mode = GetConfig().directory.empty() ? 0700 : 0777;
  while (true) {
    int fd = open((folder + "table").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT && MakeFolders(folder.substr(0, folder.size() - 1), mode)) {
      continue;
    }
    if (fd < 0) return -1;
    struct stat info = {};
    if (LockFile(fd) == 0 && fstat(fd, &info) == 0 && info.st_nlink > 0) return fd;
    close(fd);
  }
}

}  // namespace

std::string NodeDirectory() {
  const Config& config = GetConfig();
  if (!config.directory.empty()) {
    return MakeFolders(config.directory, 0777) ? config.directory : "";
  }
  std::string root = "/dev/shm";
  if (!HoldsDevices("/dev/shm")) {
    root = "/tmp";
    LogVerbose("/dev/shm is absent or smaller than the devices; their memory lives in /tmp");
  }
  root += "/simgpu-" + std::to_string(geteuid());
  // Programs with different devices are on different nodes unless they name a directory.
  std::string path =
      root + "/" + std::to_string(config.devices) + "x" + std::to_string(config.memory_bytes);
  if (!MakeFolders(path, 0700)) return "";
  struct stat info = {};
  // Gone again: the last process of another node was just leaving. OpenLocked makes it anew.
  const bool gone = lstat(root.c_str(), &info) != 0 && errno == ENOENT;
  if (!gone && (!S_ISDIR(info.st_mode) || info.st_uid != geteuid())) {
    LogAlways("%s belongs to somebody else; name another folder with the key directory",
              root.c_str());
    return "";
  }
  return path;
}

Table* MapTable(const std::string& directory, int* fd) {
  Path() = directory + "/";
  *fd = OpenLocked(Path());
  if (*fd < 0) {
    LogAlways("cannot open the node's table in %s: %s", Path().c_str(), strerror(errno));
    return nullptr;
  }
  struct stat info = {};
  bool fresh = fstat(*fd, &info) == 0 && info.st_size == 0;
  bool sized = fresh ? MakeTable(*fd) : info.st_size == static_cast<off_t>(sizeof(Table));
  if (!fresh && !sized) {
    LogAlways("%stable is of another version; remove the folder when no process uses it",
              Path().c_str());
  }
  void* at = MAP_FAILED;
  if (sized) at = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (at == MAP_FAILED) {
    close(*fd);
    return nullptr;
  }
  madvise(at, sizeof(Table), MADV_DONTFORK);
  auto* table = static_cast<Table*>(at);
  if (table->magic == 0) FillTable(table);
  if (!TableFits(*table)) {
    munmap(at, sizeof(Table));
    close(*fd);
    return nullptr;
  }
  g_inode = info.st_ino;
  g_table = table;
  if (table->dirty != 0) RecomputeSums(table);
  return table;
}

Table* NodeTable() { return g_table; }
const std::string& NodePath() { return Path(); }

void UnlinkTable() {
  unlink((Path() + "table").c_str());
  g_table = nullptr;  // stays mapped: it is gone with the process
}

void RecomputeSums(Table* table) {
  memset(table->used, 0, sizeof table->used);
  table->orphans = 0;
  table->first_free = 0;
  for (uint32_t i = 0; i < table->entry_limit; ++i) {
    const TableEntry& entry = table->entries[i];
    if (entry.device == kEntryFree) continue;
    if (entry.device >= 0) table->used[entry.device] += entry.bytes;
    table->orphans += entry.orphan;
  }
  table->dirty = 0;
}

TableLock::TableLock() {
  if (g_table == nullptr) return;
  int fd = open((Path() + "table").c_str(), O_RDWR | O_CLOEXEC);
  struct stat info = {};
  if (fd < 0 || LockFile(fd) != 0 || fstat(fd, &info) != 0 || info.st_ino != g_inode) {
    if (fd >= 0) close(fd);
    static bool said = false;
    if (!said) LogAlways("the node's folder %s was removed while in use", Path().c_str());
    said = true;
    return;
  }
  fd_ = fd;
  if (g_table->dirty != 0) RecomputeSums(g_table);
  g_table->dirty = 1;
}

TableLock::~TableLock() {
  if (fd_ < 0) return;
  if (g_table != nullptr) g_table->dirty = 0;
  close(fd_);
}

}  // namespace simgpu
