// Entry points of graph nodes that name events and attributes, superseded forms, and the picture of
// a graph. See graph_node_api.cc for the rest.

#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/stream.h"

#undef cuGraphKernelNodeGetParams
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams
#undef cuGraphExecUpdate
#undef cuGraphInstantiate

// The newer forms, which the superseded ones call.
extern "C" CUresult cuGraphInstantiate_v2(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);

namespace simgpu {
namespace {

bool IsEventNode(CUgraphNode node, CUgraphNodeType type) {
  return Graphs::Get().IsNode(node) && node->params.type == type;
}

CUresult SetEvent(CUgraphNode node, CUgraphNodeType type, CUevent event) {
  Lock lock(DriverLock());
  if (!IsEventNode(node, type) || !Streams::Get().IsEvent(event)) return CUDA_ERROR_INVALID_VALUE;
  node->params.event = event;
  return CUDA_SUCCESS;
}

CUresult SetEventInExec(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type, CUevent event) {
  Lock lock(DriverLock());
  if (!Graphs::Get().IsExec(exec) || !Streams::Get().IsEvent(event)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (ExecItem& item : exec->items) {
    if (item.node != node || item.params.type != type) continue;
    item.params.event = event;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

const char* TypeName(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return "memset";
    case CU_GRAPH_NODE_TYPE_HOST:
      return "host";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "child graph";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "event wait";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return "event record";
    default:
      return "empty";
  }
}

CUresult Print(CUgraph graph, const char* path) {
  Lock lock(DriverLock());
  if (!Graphs::Get().IsGraph(graph) || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FILE* file = fopen(path, "we");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  fprintf(file, "digraph graph_0 {\n");
  for (const auto& node : graph->nodes) {
    const char* name = node->params.launch ? node->params.launch->function->kernel->name.c_str()
                                           : TypeName(node->params.type);
    fprintf(file, "  \"%p\" [label=\"%s\"];\n", static_cast<void*>(node.get()), name);
    for (const CUgraphNode to : node->to) {
      fprintf(file, "  \"%p\" -> \"%p\";\n", static_cast<void*>(node.get()),
              static_cast<void*>(to));
    }
  }
  fprintf(file, "}\n");
  return fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event) {
  SIMGPU_ENTER();
  return simgpu::SetEvent(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

SIMGPU_API CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event) {
  SIMGPU_ENTER();
  return simgpu::SetEvent(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

SIMGPU_API CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                       CUevent event) {
  SIMGPU_ENTER();
  return simgpu::SetEventInExec(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

SIMGPU_API CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node,
                                                     CUevent event) {
  SIMGPU_ENTER();
  return simgpu::SetEventInExec(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

SIMGPU_API CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned) {
  SIMGPU_ENTER();
  return simgpu::Print(graph, path);
}

SIMGPU_API CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1* out) {
  SIMGPU_ENTER();
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS params{};
  const CUresult result = cuGraphKernelNodeGetParams_v2(node, &params);
  if (result == CUDA_SUCCESS) memcpy(out, &params, sizeof(*out));
  return result;
}

SIMGPU_API CUresult cuGraphKernelNodeSetParams(CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v1* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS params{};
  memcpy(&params, given, sizeof(*given));
  return cuGraphKernelNodeSetParams_v2(node, &params);
}

SIMGPU_API CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                   const CUDA_KERNEL_NODE_PARAMS_v1* given) {
  SIMGPU_ENTER();
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_KERNEL_NODE_PARAMS params{};
  memcpy(&params, given, sizeof(*given));
  return cuGraphExecKernelNodeSetParams_v2(exec, node, &params);
}

SIMGPU_API CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode* error,
                                      CUgraphExecUpdateResult* result) {
  SIMGPU_ENTER();
  if (error == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphExecUpdateResultInfo info{};
  const CUresult code = cuGraphExecUpdate_v2(exec, graph, &info);
  *error = info.errorNode;
  *result = info.result;
  return code;
}

SIMGPU_API CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, CUgraphNode* error,
                                       char* log, size_t log_bytes) {
  SIMGPU_ENTER();
  return cuGraphInstantiate_v2(exec, graph, error, log, log_bytes);
}
