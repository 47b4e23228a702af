// See node_stale.h.

#include "simgpu/driver/node_stale.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

struct NodeFiles {
  bool table = false;
  std::vector<std::string> holders;
  std::vector<std::string> memory;
  bool foreign = false;  // something that no node makes
  std::vector<std::string> folders;
};

// Names in an open folder; the descriptor stays the caller's.
std::vector<std::string> NamesIn(int folder) {
  std::vector<std::string> names;
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : fdopendir(copy);
  if (listing == nullptr) {
    if (copy >= 0) close(copy);
    return names;
  }
  while (const dirent* entry = readdir(listing)) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      names.emplace_back(entry->d_name);
    }
  }
  closedir(listing);
  return names;
}

bool IsHolderName(const char* name) {
  int slot = 0;
  unsigned long long serial = 0;
  int end = 0;
  return sscanf(name, "p%d-%llu%n", &slot, &serial, &end) == 2 && name[end] == '\0';
}

bool IsMemoryName(const char* name) {
  int device = 0;
  unsigned long long id = 0;
  int end = 0;
  return sscanf(name, "m%d-%llx%n", &device, &id, &end) == 2 && name[end] == '\0';
}

NodeFiles ListNode(int folder) {
  NodeFiles files;
  for (const std::string& name : NamesIn(folder)) {
    struct stat info = {};
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      files.folders.push_back(name);
    } else if (!S_ISREG(info.st_mode)) {
      files.foreign = true;
    } else if (name == "table") {
      files.table = true;
    } else if (IsHolderName(name.c_str())) {
      files.holders.push_back(name);
    } else if (IsMemoryName(name.c_str())) {
      files.memory.push_back(name);
    } else {
      files.foreign = true;
    }
  }
  return files;
}

// A descriptor of `name` with its lock, or -1 where somebody holds it.
int TryLock(int folder, const std::string& name) {
  const int fd = openat(folder, name.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
  close(fd);
  return -1;
}

bool AllUnheld(int folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const int fd = TryLock(folder, name);
    if (fd < 0) return false;
    close(fd);
  }
  return true;
}

// True when the folder held a dead node, which is gone now. Under the table's lock nobody joins.
bool RemoveNode(int folder) {
  const int table = TryLock(folder, "table");
  if (table < 0) return false;
  struct stat info = {};
  const NodeFiles files = ListNode(folder);
  const bool dead = fstat(table, &info) == 0 && info.st_nlink > 0 && !files.foreign &&
                    files.folders.empty() && AllUnheld(folder, files.holders) &&
                    AllUnheld(folder, files.memory);
  if (dead) {
    for (const std::string& name : files.memory) unlinkat(folder, name.c_str(), 0);
    for (const std::string& name : files.holders) unlinkat(folder, name.c_str(), 0);
    unlinkat(folder, "table", 0);
  }
  close(table);
  return dead;
}

int OpenOwnFolder(int parent, const std::string& name) {
  const int fd = openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info = {};
  if (fd < 0 || (fstat(fd, &info) == 0 && info.st_uid == geteuid())) return fd;
  close(fd);
  return -1;
}

// The node in `name`, or the nodes in the folders of `name`.
void SweepFolder(int parent, const std::string& name, const std::string& path, bool deeper) {
  const int folder = OpenOwnFolder(parent, name);
  if (folder < 0) return;
  const NodeFiles files = ListNode(folder);
  bool removed = false;
  if (files.table) {
    removed = RemoveNode(folder);
    if (removed) LogVerbose("removed the node in %s, whose last process was killed", path.c_str());
  } else if (deeper && !files.foreign) {
    for (const std::string& below : files.folders) {
      SweepFolder(folder, below, path + "/" + below, false);
    }
    removed = !files.folders.empty();
  }
  close(folder);
  // Only an empty folder goes; whoever is about to make a table in it makes it again.
  if (removed) unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

}  // namespace

void RemoveStaleNodes() {
  for (const char* root : {"/dev/shm", "/tmp"}) {
    const int parent = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0) continue;
    for (const std::string& name : NamesIn(parent)) {
      if (name.compare(0, 7, "simgpu-") != 0) continue;
      SweepFolder(parent, name, std::string(root) + "/" + name, true);
    }
    close(parent);
  }
}

}  // namespace simgpu
