// Holders of physical memory; see physical.h. The node is told of a release only when the last
// holder of that memory in this process is gone. Thread rule: callers hold the driver lock.

#include "simgpu/driver/physical.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

std::map<uint64_t, int>& Holders() {
  static auto* holders =
      new std::map<uint64_t, int>;  // node memory id -> Physicals of this process
  return *holders;
}

constexpr size_t kAnchorBytes = 4096;

// Takes over `fd`. The lock on the file is kept by a mapping of one inaccessible page: no
// descriptor that the program could close or run out of, and none that a forked child would keep
// alive.
CUresult Hold(const NodeMemory& memory, int fd, std::unique_ptr<Physical>* physical) {
  void* anchor = mmap(nullptr, kAnchorBytes, PROT_NONE, MAP_SHARED, fd, 0);
  const int error = errno;
  close(fd);
  if (anchor == MAP_FAILED) {
    LogAlways("cannot hold device memory: %s (see vm.max_map_count)", strerror(error));
    if (Holders().count(memory.id) == 0) ReleaseNodeMemory(memory.id);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  madvise(anchor, kAnchorBytes, MADV_DONTFORK);
  *physical = std::make_unique<Physical>();
  (*physical)->memory = memory;
  (*physical)->anchor = anchor;
  (*physical)->host_backed = memory.device == kHostMemory;
  ++Holders()[memory.id];
  return CUDA_SUCCESS;
}

}  // namespace

Physical::~Physical() {
  if (anchor == nullptr) return;
  munmap(anchor, kAnchorBytes);
  auto held = Holders().find(memory.id);
  if (held == Holders().end() || --held->second > 0) return;
  Holders().erase(held);
  ReleaseNodeMemory(memory.id);
}

CUresult NewPhysical(int device, size_t bytes, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int fd = -1;
  const CUresult result = CreateNodeMemory(device, bytes, &memory, &fd);
  return result == CUDA_SUCCESS ? Hold(memory, fd, physical) : result;
}

CUresult AdoptPhysical(int fd, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int own_fd = -1;
  const CUresult result = AdoptNodeMemory(fd, &memory, &own_fd);
  return result == CUDA_SUCCESS ? Hold(memory, own_fd, physical) : result;
}

CUresult AdoptPhysical(uint64_t id, std::unique_ptr<Physical>* physical) {
  NodeMemory memory;
  int own_fd = -1;
  const CUresult result = AdoptNodeMemory(id, &memory, &own_fd);
  return result == CUDA_SUCCESS ? Hold(memory, own_fd, physical) : result;
}

}  // namespace simgpu
