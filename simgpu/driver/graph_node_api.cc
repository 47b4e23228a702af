// Entry points of graph nodes: adding them, and reading and changing their parameters, in graphs
// and in executable graphs.

#include <cuda.h>

#include <cstring>

#include "simgpu/driver/copy.h"
#include "simgpu/driver/graph.h"
#include "simgpu/driver/graph_memory.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

CUresult Describe(const CUDA_KERNEL_NODE_PARAMS& given, NodeParams* params) {
  const CUfunction function =
      FunctionOf(given.func != nullptr ? static_cast<const void*>(given.func) : given.kern);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto launch = LaunchShapedAs(given);
  const CUresult result = FillLaunch(function, given.kernelParams, given.extra, launch.get());
  params->type = CU_GRAPH_NODE_TYPE_KERNEL;
  params->launch = launch;
  return result;
}

CUDA_KERNEL_NODE_PARAMS WithKern(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS params{};
  static_assert(sizeof(old) <= sizeof(params));
  memcpy(&params, &old, sizeof(old));
  return params;
}

// The pointers lead into the node's own copy of the parameters.
CUDA_KERNEL_NODE_PARAMS Tell(const Launch& launch) {
  CUDA_KERNEL_NODE_PARAMS out{};
  out.func = launch.function;
  out.gridDimX = launch.grid[0];
  out.gridDimY = launch.grid[1];
  out.gridDimZ = launch.grid[2];
  out.blockDimX = launch.block[0];
  out.blockDimY = launch.block[1];
  out.blockDimZ = launch.block[2];
  out.sharedMemBytes = launch.dynamic_shared_bytes;
  out.kernelParams = const_cast<void**>(launch.params.data());
  return out;
}

CUresult Describe(const CUDA_MEMCPY3D& copy, CUcontext context, NodeParams* params) {
  CopyShape shape;
  Side dst = Side::kUnified;
  Side src = Side::kUnified;
  if (const CUresult bad = ShapeOf(copy, &shape, &dst, &src); bad != CUDA_SUCCESS) return bad;
  if (const CUresult bad = CheckSides(shape, dst, src); bad != CUDA_SUCCESS) return bad;
  params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params->context = context;
  params->copy = copy;
  return CUDA_SUCCESS;
}

CUresult Describe(const CUDA_MEMSET_NODE_PARAMS& memset, CUcontext context, NodeParams* params) {
  if (const CUresult bad = CheckMemset(memset); bad != CUDA_SUCCESS) return bad;
  params->type = CU_GRAPH_NODE_TYPE_MEMSET;
  params->context = context;
  params->memset = memset;
  return CUDA_SUCCESS;
}

CUresult Describe(const CUDA_HOST_NODE_PARAMS& host, NodeParams* params) {
  if (host.fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->type = CU_GRAPH_NODE_TYPE_HOST;
  params->host = host;
  return CUDA_SUCCESS;
}

CUresult DescribeEvent(CUevent event, CUgraphNodeType type, NodeParams* params) {
  if (!Streams::Get().IsEvent(event)) return CUDA_ERROR_INVALID_VALUE;
  params->type = type;
  params->event = event;
  return CUDA_SUCCESS;
}

CUresult DescribeChild(CUgraph graph, NodeParams* params) {
  if (!Graphs::Get().IsGraph(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (HasMemoryNodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
  params->type = CU_GRAPH_NODE_TYPE_GRAPH;
  params->child = Graphs::Get().Clone(graph);
  return CUDA_SUCCESS;
}

// The form of the second version: the same fields, without a difference that matters here.
CUresult DescribeAllocation(CUDA_MEM_ALLOC_NODE_PARAMS_v2* given, NodeParams* params) {
  CUDA_MEM_ALLOC_NODE_PARAMS old{};
  static_assert(sizeof(old) == sizeof(*given));
  memcpy(&old, given, sizeof(old));
  const CUresult result = DescribeAllocation(&old, params);
  given->dptr = old.dptr;
  return result;
}

// The general form of all of the above. Without a graph it describes new parameters of an old node,
// which memory nodes do not take.
CUresult Describe(CUgraph graph, CUgraphNodeParams* all, NodeParams* params) {
  const CUgraphNodeParams& given = *all;
  const bool memory =
      given.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || given.type == CU_GRAPH_NODE_TYPE_MEM_FREE;
  if (memory && graph == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  switch (given.type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return DescribeAllocation(&all->alloc, params);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return DescribeFree(graph, given.free.dptr, params);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS kernel{};
      static_assert(sizeof(kernel) == sizeof(given.kernel));
      memcpy(&kernel, &given.kernel, sizeof(kernel));
      return Describe(kernel, params);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return Describe(given.memcpy.copyParams, given.memcpy.copyCtx, params);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& m = given.memset;
      return Describe({m.dst, m.pitch, m.value, m.elementSize, m.width, m.height}, m.ctx, params);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      return Describe({given.host.fn, given.host.userData}, params);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return DescribeChild(given.graph.graph, params);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return DescribeEvent(given.eventWait.event, given.type, params);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return DescribeEvent(given.eventRecord.event, given.type, params);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

struct Where {
  CUgraph graph;
  const CUgraphNode* from;
  size_t count;
};

// Adds a node that `describe(&params)` describes.
template <typename DescribeIt>
CUresult Add(CUgraphNode* out, const Where& at, DescribeIt describe) {
  Lock lock(DriverLock());
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  Graphs& graphs = Graphs::Get();
  if (out == nullptr || !graphs.IsGraph(at.graph) || (at.count != 0 && at.from == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < at.count; ++i) {
    if (!graphs.IsNode(at.from[i]) || at.from[i]->graph != at.graph) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  NodeParams params;
  if (const CUresult bad = describe(&params); bad != CUDA_SUCCESS) return bad;
  *out = graphs.AddNode(at.graph, std::vector<CUgraphNode>(at.from, at.from + at.count),
                        std::move(params));
  return CUDA_SUCCESS;
}

// Runs `answer(params)` on a node of that type.
template <typename Answer>
CUresult OnNode(CUgraphNode node, CUgraphNodeType type, Answer answer) {
  Lock lock(DriverLock());
  if (!Graphs::Get().IsNode(node) || node->params.type != type) return CUDA_ERROR_INVALID_VALUE;
  return answer(&node->params);
}

// Replaces a node's parameters by what `describe` says; the type has to stay.
template <typename DescribeIt>
CUresult Replace(NodeParams* old, DescribeIt describe) {
  NodeParams params;
  if (const CUresult bad = describe(&params); bad != CUDA_SUCCESS) return bad;
  if (params.type != old->type) return CUDA_ERROR_INVALID_VALUE;
  *old = std::move(params);
  return CUDA_SUCCESS;
}

template <typename DescribeIt>
CUresult ReplaceInNode(CUgraphNode node, DescribeIt describe) {
  Lock lock(DriverLock());
  if (!Graphs::Get().IsNode(node)) return CUDA_ERROR_INVALID_VALUE;
  return Replace(&node->params, describe);
}

ExecItem* ItemOf(CUgraphExec exec, CUgraphNode node) {
  if (!Graphs::Get().IsExec(exec)) return nullptr;
  for (ExecItem& item : exec->items) {
    if (item.node == node) return &item;
  }
  return nullptr;
}

template <typename DescribeIt>
CUresult ReplaceInExec(CUgraphExec exec, CUgraphNode node, DescribeIt describe) {
  Lock lock(DriverLock());
  ExecItem* item = ItemOf(exec, node);
  return item == nullptr ? CUDA_ERROR_INVALID_VALUE : Replace(&item->params, describe);
}

}  // namespace
}  // namespace simgpu

using simgpu::NodeParams;

SIMGPU_API CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph,
                                            const CUgraphNode* from, size_t count,
                                            const CUDA_KERNEL_NODE_PARAMS* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::Describe(*given, params); });
}

#undef cuGraphAddKernelNode
SIMGPU_API CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                         size_t count, const CUDA_KERNEL_NODE_PARAMS_v1* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count}, [&](NodeParams* params) {
    return simgpu::Describe(simgpu::WithKern(*given), params);
  });
}

SIMGPU_API CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                         size_t count, const CUDA_MEMCPY3D* copy,
                                         CUcontext context) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::Describe(*copy, context, params); });
}

SIMGPU_API CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                         size_t count, const CUDA_MEMSET_NODE_PARAMS* memset,
                                         CUcontext context) {
  SIMGPU_ENTER();
  if (memset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count}, [&](NodeParams* params) {
    return simgpu::Describe(*memset, context, params);
  });
}

SIMGPU_API CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                       size_t count, const CUDA_HOST_NODE_PARAMS* host) {
  SIMGPU_ENTER();
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::Describe(*host, params); });
}

SIMGPU_API CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                        size_t count) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count}, [](NodeParams*) { return CUDA_SUCCESS; });
}

SIMGPU_API CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph,
                                             const CUgraphNode* from, size_t count, CUgraph child) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::DescribeChild(child, params); });
}

SIMGPU_API CUresult cuGraphAddEventRecordNode(CUgraphNode* out, CUgraph graph,
                                              const CUgraphNode* from, size_t count,
                                              CUevent event) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count}, [&](NodeParams* params) {
    return simgpu::DescribeEvent(event, CU_GRAPH_NODE_TYPE_EVENT_RECORD, params);
  });
}

SIMGPU_API CUresult cuGraphAddEventWaitNode(CUgraphNode* out, CUgraph graph,
                                            const CUgraphNode* from, size_t count, CUevent event) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count}, [&](NodeParams* params) {
    return simgpu::DescribeEvent(event, CU_GRAPH_NODE_TYPE_WAIT_EVENT, params);
  });
}

SIMGPU_API CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                      const CUgraphEdgeData*, size_t count,
                                      CUgraphNodeParams* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::Describe(graph, given, params); });
}

#undef cuGraphAddNode
SIMGPU_API CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                   size_t count, CUgraphNodeParams* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::Describe(graph, given, params); });
}

SIMGPU_API CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                           size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* given) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count},
                     [&](NodeParams* params) { return simgpu::DescribeAllocation(given, params); });
}

SIMGPU_API CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* from,
                                          size_t count, CUdeviceptr address) {
  SIMGPU_ENTER();
  return simgpu::Add(out, {graph, from, count}, [&](NodeParams* params) {
    return simgpu::DescribeFree(graph, address, params);
  });
}

SIMGPU_API CUresult cuGraphDestroyNode(CUgraphNode node) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (!simgpu::Graphs::Get().IsNode(node)) return CUDA_ERROR_INVALID_VALUE;
  if (simgpu::HasMemoryNodes(node->graph)) return CUDA_ERROR_NOT_SUPPORTED;
  simgpu::Graphs::Get().RemoveNode(node);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (!simgpu::Graphs::Get().IsNode(node) || type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->params.type;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_KERNEL, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = simgpu::Tell(*params->launch);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_MEMCPY, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->copy;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_MEMSET, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->memset;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_HOST, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->host;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_GRAPH, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->child;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->event;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* out) {
  SIMGPU_ENTER();
  return simgpu::OnNode(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, [&](NodeParams* params) {
    if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *out = params->event;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node,
                                                  const CUDA_KERNEL_NODE_PARAMS* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInNode(
      node, [&](NodeParams* params) { return simgpu::Describe(*given, params); });
}

SIMGPU_API CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D* copy) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInNode(
      node, [&](NodeParams* params) { return simgpu::Describe(*copy, nullptr, params); });
}

SIMGPU_API CUresult cuGraphMemsetNodeSetParams(CUgraphNode node,
                                               const CUDA_MEMSET_NODE_PARAMS* memset) {
  SIMGPU_ENTER();
  if (memset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInNode(
      node, [&](NodeParams* params) { return simgpu::Describe(*memset, nullptr, params); });
}

SIMGPU_API CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS* host) {
  SIMGPU_ENTER();
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInNode(node,
                               [&](NodeParams* params) { return simgpu::Describe(*host, params); });
}

SIMGPU_API CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInNode(
      node, [&](NodeParams* params) { return simgpu::Describe(nullptr, given, params); });
}

SIMGPU_API CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                                      const CUDA_KERNEL_NODE_PARAMS* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInExec(
      exec, node, [&](NodeParams* params) { return simgpu::Describe(*given, params); });
}

SIMGPU_API CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_MEMCPY3D* copy, CUcontext context) {
  SIMGPU_ENTER();
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInExec(
      exec, node, [&](NodeParams* params) { return simgpu::Describe(*copy, context, params); });
}

SIMGPU_API CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_MEMSET_NODE_PARAMS* memset,
                                                   CUcontext context) {
  SIMGPU_ENTER();
  if (memset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInExec(
      exec, node, [&](NodeParams* params) { return simgpu::Describe(*memset, context, params); });
}

SIMGPU_API CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                 const CUDA_HOST_NODE_PARAMS* host) {
  SIMGPU_ENTER();
  if (host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInExec(exec, node,
                               [&](NodeParams* params) { return simgpu::Describe(*host, params); });
}

SIMGPU_API CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                             CUgraphNodeParams* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::ReplaceInExec(
      exec, node, [&](NodeParams* params) { return simgpu::Describe(nullptr, given, params); });
}

SIMGPU_API CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned enabled) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  simgpu::ExecItem* item = simgpu::ItemOf(exec, node);
  if (item == nullptr) return CUDA_ERROR_INVALID_VALUE;
  item->enabled = enabled != 0;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned* enabled) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  const simgpu::ExecItem* item = simgpu::ItemOf(exec, node);
  if (item == nullptr || enabled == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *enabled = item->enabled ? 1 : 0;
  return CUDA_SUCCESS;
}
