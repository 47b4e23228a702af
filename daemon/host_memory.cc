#include "daemon/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tidemark::daemon {
namespace {

uint64_t MeminfoBytes(const std::string& root, const std::string& key) {
  std::ifstream file(root + "/proc/meminfo");
  std::string name;
  uint64_t kib = 0;
  std::string rest;
  while (file >> name >> kib && std::getline(file, rest)) {
    if (name == key + ":") return kib * 1024;
  }
  return 0;
}

// A cgroup file that holds one number; `fallback` when absent or "max".
uint64_t NumberIn(const std::string& path, uint64_t fallback) {
  std::ifstream file(path);
  std::string text;
  uint64_t number = 0;
  if (!(file >> text) || !absl::SimpleAtoi(text, &number)) return fallback;
  return number;
}

// What the cgroups from the process's own up to the root leave, by version 2 files or the memory
// controller of version 1.
uint64_t CgroupLeft(const std::string& root) {
  std::ifstream file(root + "/proc/self/cgroup");
  std::string line;
  uint64_t left = UINT64_MAX;
  while (std::getline(file, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && controllers.find("memory") == std::string::npos) continue;
    const std::string base = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    for (std::string path = line.substr(second + 1);; path = path.substr(0, path.rfind('/'))) {
      if (path == "/") path.clear();
      const std::string folder = base + path;
      const uint64_t limit =
          NumberIn(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"), UINT64_MAX);
      const uint64_t used =
          NumberIn(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"), 0);
      if (limit != UINT64_MAX) left = std::min(left, limit > used ? limit - used : 0);
      if (path.empty()) break;
    }
  }
  return left;
}

}  // namespace

HostMemory ReadHostMemory(const std::string& root) {
  HostMemory memory;
  memory.total_bytes = MeminfoBytes(root, "MemTotal");
  memory.available_bytes = std::min(MeminfoBytes(root, "MemAvailable"), CgroupLeft(root));
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  memory.memlock_bytes = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
  return memory;
}

uint64_t HostFloorBytes(const HostMemory& memory) {
  return std::min<uint64_t>(memory.total_bytes / 32, uint64_t{1} << 30);
}

}  // namespace tidemark::daemon
