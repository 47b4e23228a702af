// What this node's host memory can spare for pinned chunks: MemAvailable, the cgroup's limit, and
// the memlock limit, which some drivers charge.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_HOST_MEMORY_H_
#define TIDEMARK_DAEMON_HOST_MEMORY_H_

#include <cstdint>
#include <string>

namespace tidemark::daemon {

struct HostMemory {
  uint64_t total_bytes = 0;
  uint64_t available_bytes = 0;  // MemAvailable, bounded by what the cgroup leaves
  uint64_t memlock_bytes = 0;    // UINT64_MAX: unlimited
};

// Reads /proc and the cgroup files under `root` ("" in production, a folder in tests).
HostMemory ReadHostMemory(const std::string& root = "");

// Host bytes that must stay free whatever the budget says: 1/32 of the memory, at most 1 GiB.
uint64_t HostFloorBytes(const HostMemory& memory);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_HOST_MEMORY_H_
