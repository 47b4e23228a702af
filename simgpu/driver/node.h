// What the processes of one node share: the capacity of each device and the files that hold its
// memory. A physical allocation is one file in the node's directory. Whoever holds it (a mapping,
// or a descriptor on its way to another process) has it open with a shared flock; a file that
// nobody has locked belongs to nobody and is removed, so a killed process gives its memory back by
// dying.
//
// Not here: device addresses (address_space.h) and handles (physical.h).
// Thread rule: callers hold the driver lock; other processes are kept out by a flock on the table.

#ifndef SIMGPU_DRIVER_NODE_H_
#define SIMGPU_DRIVER_NODE_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace simgpu {

constexpr int kHostMemory = -1;  // device number of memory that counts against no device

struct NodeMemory {
  uint64_t id = 0;  // unique in the node for its lifetime; 0 is never given
  int device = kHostMemory;
  size_t bytes = 0;
};

// Attaches this process to the node and sweeps what dead processes left. A sentence is logged on
// failure.
CUresult JoinNode();

// Takes `bytes` of `device`'s capacity and makes the file; `*fd` is open, locked and owned by the
// caller. CUDA_ERROR_OUT_OF_MEMORY when the capacity or the file system is exhausted; nothing is
// left behind then.
CUresult CreateNodeMemory(int device, size_t bytes, NodeMemory* memory, int* fd);

// Makes this process a holder of memory that another one made. `fd` stays the caller's; `*own_fd`
// is a locked descriptor of the new holder. CUDA_ERROR_INVALID_VALUE if it is no memory of this
// node.
CUresult AdoptNodeMemory(int fd, NodeMemory* memory, int* own_fd);
CUresult AdoptNodeMemory(uint64_t id, NodeMemory* memory, int* own_fd);

// One more descriptor of memory that this process holds; locked if `hold`. -1 on failure.
int OpenNodeMemory(uint64_t id, bool hold);

// This process has closed and unmapped everything of `id`. Its capacity returns now, or as soon as
// the last other holder is gone.
void ReleaseNodeMemory(uint64_t id);

// Bytes in use on `device` now, over all processes.
uint64_t NodeUsedBytes(int device);

// Distinguishes this node from others in IPC handles.
uint64_t NodeIdentity();

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_NODE_H_
