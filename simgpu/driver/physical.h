// Physical memory of this process: what a VMM handle names and what plain allocations stand on. One
// Physical is one holder of one memory of the node (node.h), with its handle and mapping counts;
// the memory goes back when both are zero. Thread rule: callers hold the driver lock.

#ifndef SIMGPU_DRIVER_PHYSICAL_H_
#define SIMGPU_DRIVER_PHYSICAL_H_

#include <cuda.h>

#include <memory>

#include "simgpu/driver/node.h"

namespace simgpu {

struct Physical {
  NodeMemory memory;
  CUmemAllocationProp prop = {};
  void* anchor = nullptr;                   // keeps the file locked while the Physical lives
  CUmemGenericAllocationHandle handle = 0;  // its number, for VMM memory
  int handle_refs = 0;                      // cuMemCreate, import and retain, less release
  int mappings = 0;
  bool imported = false;
  bool host_backed = false;

  Physical() = default;
  ~Physical();  // closes, and gives the memory back
  Physical(const Physical&) = delete;
  Physical& operator=(const Physical&) = delete;
};

// Makes memory on `device`, or in host memory for kHostMemory. CUDA_ERROR_OUT_OF_MEMORY when it
// does not fit.
CUresult NewPhysical(int device, size_t bytes, std::unique_ptr<Physical>* physical);

// A further holder of memory that another process, or this one, made.
CUresult AdoptPhysical(int fd, std::unique_ptr<Physical>* physical);
CUresult AdoptPhysical(uint64_t id, std::unique_ptr<Physical>* physical);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_PHYSICAL_H_
