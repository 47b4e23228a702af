// Holders of physical memory; see physical.h. The node is told of a release only when the last
// holder of that memory in this process is gone. Thread rule: callers hold the driver lock.

#include "simgpu/driver/physical.h"

#include <sys/resource.h>
#include <unistd.h>

#include <map>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

std::map<uint64_t, int>& Holders() {
  static auto* holders =
      new std::map<uint64_t, int>;  // node memory id -> Physicals of this process
  return *holders;
}

// Every allocation keeps a descriptor open; the usual soft limit of 1024 is 2 GiB of 2 MiB chunks.
void RaiseDescriptorLimit(int fd) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  if (static_cast<rlim_t>(fd) + 64 < limit.rlim_cur) return;
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
    LogVerbose("raised the soft limit of open files to %llu",
               static_cast<unsigned long long>(limit.rlim_max));
  }
}

std::unique_ptr<Physical> Hold(const NodeMemory& memory, int fd) {
  RaiseDescriptorLimit(fd);
  auto physical = std::make_unique<Physical>();
  physical->memory = memory;
  physical->fd = fd;
  physical->host_backed = memory.device == kHostMemory;
  ++Holders()[memory.id];
  return physical;
}

}  // namespace

Physical::~Physical() {
  if (fd < 0) return;
  close(fd);
  auto held = Holders().find(memory.id);
  if (held == Holders().end() || --held->second > 0) return;
  Holders().erase(held);
  ReleaseNodeMemory(memory.id);
}

CUresult NewPhysical(int device, size_t bytes, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int fd = -1;
  const CUresult result = CreateNodeMemory(device, bytes, &memory, &fd);
  if (result == CUDA_SUCCESS) *physical = Hold(memory, fd);
  return result;
}

CUresult AdoptPhysical(int fd, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int own_fd = -1;
  const CUresult result = AdoptNodeMemory(fd, &memory, &own_fd);
  if (result == CUDA_SUCCESS) *physical = Hold(memory, own_fd);
  return result;
}

CUresult AdoptPhysical(uint64_t id, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int own_fd = -1;
  const CUresult result = AdoptNodeMemory(id, &memory, &own_fd);
  if (result == CUDA_SUCCESS) *physical = Hold(memory, own_fd);
  return result;
}

}  // namespace simgpu
