// Memory that graphs allocate and free: allocation and free nodes, made by hand or by capturing
// cuMemAllocAsync and cuMemFreeAsync. The address is fixed when the node is made and belongs to the
// graph as long as the graph or anything instantiated from it lives; the memory may be touched
// between the allocation node and the free in stream order, launch by launch, and is poison at each
// start.
//
// Whether an allocation is still to be freed is a matter of what was submitted, not of what ran:
// Range::free_queued says so, for graph memory as for pools. Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_GRAPH_MEMORY_H_
#define SIMGPU_DRIVER_GRAPH_MEMORY_H_

#include <cuda.h>

#include <memory>
#include <vector>

#include "simgpu/driver/address_space.h"
#include "simgpu/driver/graph.h"

namespace simgpu {

// One allocation node's memory. Owners: the nodes that name it, executable graphs, queued
// operations.
class GraphMemory {
 public:
  GraphMemory(CUdeviceptr base, const CUDA_MEM_ALLOC_NODE_PARAMS& params)
      : base_(base), params_(params) {}
  // An allocation that nobody freed stays until cuMemFree or cuMemFreeAsync.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  CUdeviceptr base() const { return base_; }
  const CUDA_MEM_ALLOC_NODE_PARAMS& params() const { return params_; }

 private:
  CUdeviceptr base_;
  CUDA_MEM_ALLOC_NODE_PARAMS params_;
};

// Describes an allocation node and takes its memory; `params->dptr` is its address then.
CUresult DescribeAllocation(CUDA_MEM_ALLOC_NODE_PARAMS* given, NodeParams* params);
// Describes a node of `graph` that frees memory of this or of another graph.
CUresult DescribeFree(CUgraph graph, CUdeviceptr address, NodeParams* params);

bool HasMemoryNodes(CUgraph graph);

// What an allocation or free node does when its place is reached.
Operation MemoryOperation(const NodeParams& params);
// Before a launch is submitted: CUDA_ERROR_INVALID_VALUE if it would allocate what is allocated or
// free what is not, with nothing changed. `stale`, with automatic freeing: what to free first.
CUresult BeginMemoryOf(const std::vector<ExecItem>& items, bool automatic,
                       std::vector<CUdeviceptr>* stale);

// The end of a range of graph memory, by cuMemFree, cuMemFreeAsync or a free node.
void EndGraphMemory(Range* range);
void EndGraphMemory(const std::vector<CUdeviceptr>& bases);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_GRAPH_MEMORY_H_
