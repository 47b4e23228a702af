// See graph_memory.h.

#include "simgpu/driver/graph_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "simgpu/driver/alloc.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

// As memory that cuMemAlloc hands out: NaN as floats, -1 as integers.
constexpr int kPoison = 0xFF;

std::map<CUdeviceptr, std::weak_ptr<GraphMemory>>& Known() {
  static auto* known = new std::map<CUdeviceptr, std::weak_ptr<GraphMemory>>;
  return *known;
}

Range* RangeOf(CUdeviceptr address) {
  Range* range = FindRange(address);
  return range != nullptr && range->base == address && range->of_graph ? range : nullptr;
}

bool IsAllocation(const ExecItem& item) { return item.params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC; }
bool IsFree(const ExecItem& item) { return item.params.type == CU_GRAPH_NODE_TYPE_MEM_FREE; }

CUresult CheckProps(const CUDA_MEM_ALLOC_NODE_PARAMS& given) {
  const CUmemPoolProps& props = given.poolProps;
  if (given.bytesize == 0 || props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      props.handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (given.accessDescCount != 0 && given.accessDescs == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return IsDevice(props.location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

}  // namespace

GraphMemory::~GraphMemory() {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  Known().erase(base_);
  Range* range = RangeOf(base_);
  if (range == nullptr) return;
  range->graph_gone = true;
  if (!range->live) FreeRange(range, "freed with its graph");
}

CUresult DescribeAllocation(CUDA_MEM_ALLOC_NODE_PARAMS* given, NodeParams* params) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult bad = CheckProps(*given); bad != CUDA_SUCCESS) return bad;
  CUresult result = CUDA_SUCCESS;
  Range* range = AllocateRange(Kind::kPool, given->poolProps.location.id, given->bytesize, &result);
  if (range == nullptr) return result;
  range->of_graph = true;
  range->live = false;
  range->free_queued = true;  // nothing to free before the first launch
  for (size_t i = 0; i < given->accessDescCount; ++i) {
    range->access[given->accessDescs[i].location.id] = given->accessDescs[i].flags;
  }
  given->dptr = range->base;
  params->type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  params->memory = std::make_shared<GraphMemory>(range->base, *given);
  Known()[range->base] = params->memory;
  return CUDA_SUCCESS;
}

CUresult DescribeFree(CUgraph graph, CUdeviceptr address, NodeParams* params) {
  const auto found = Known().find(address);
  if (found == Known().end()) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& node : graph->nodes) {
    const bool frees = node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
    if (frees && node->params.memory->base() == address) return CUDA_ERROR_INVALID_VALUE;
  }
  params->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  params->memory = found->second.lock();
  return params->memory == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

bool HasMemoryNodes(CUgraph graph) {
  return std::any_of(graph->nodes.begin(), graph->nodes.end(), [](const auto& node) {
    return node->params.memory != nullptr ||
           (node->params.child != nullptr && HasMemoryNodes(node->params.child));
  });
}

Operation MemoryOperation(const NodeParams& params) {
  Operation op;
  const std::shared_ptr<GraphMemory> memory = params.memory;
  const bool allocates = params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  op.name = allocates ? "graph allocation node" : "graph free node";
  op.run = [memory, allocates](Operation&) -> CUresult {
    Range* range = RangeOf(memory->base());
    if (range == nullptr || range->live == allocates) return CUDA_ERROR_INVALID_VALUE;
    if (!allocates) {
      EndGraphMemory(range);
      return CUDA_SUCCESS;
    }
    memset(reinterpret_cast<void*>(range->base), kPoison, range->span_bytes);
    range->live = true;
    return CUDA_SUCCESS;
  };
  return op;
}

CUresult BeginMemoryOf(const std::vector<ExecItem>& items, bool automatic,
                       std::vector<CUdeviceptr>* stale) {
  std::set<CUdeviceptr> allocated;
  std::set<CUdeviceptr> freed;
  for (const ExecItem& item : items) {
    if (!IsAllocation(item) && !IsFree(item)) continue;
    const CUdeviceptr base = item.params.memory->base();
    (IsAllocation(item) ? allocated : freed).insert(base);
    if (!IsAllocation(item)) continue;
    const bool is_allocated = !RangeOf(base)->free_queued;
    if (is_allocated && !automatic) return CUDA_ERROR_INVALID_VALUE;
    if (is_allocated) stale->push_back(base);
  }
  for (const CUdeviceptr base : freed) {
    if (allocated.count(base) == 0 && RangeOf(base)->free_queued) return CUDA_ERROR_INVALID_VALUE;
  }
  for (const CUdeviceptr base : allocated) RangeOf(base)->free_queued = false;
  for (const CUdeviceptr base : freed) RangeOf(base)->free_queued = true;
  return CUDA_SUCCESS;
}

void EndGraphMemory(Range* range) {
  ForgetRange(range->base, range->span_bytes);
  range->live = false;
  if (range->graph_gone) FreeRange(range, "freed after its graph");
}

void EndGraphMemory(const std::vector<CUdeviceptr>& bases) {
  for (const CUdeviceptr base : bases) {
    if (Range* range = RangeOf(base)) EndGraphMemory(range);
  }
}

}  // namespace simgpu

SIMGPU_API CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node,
                                                 CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (!simgpu::Graphs::Get().IsNode(node) || out == nullptr ||
      node->params.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = node->params.memory->params();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (!simgpu::Graphs::Get().IsNode(node) || out == nullptr ||
      node->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *out = node->params.memory->base();
  return CUDA_SUCCESS;
}
