// Entry points of graphs as a whole: creation, edges, instantiation, launch, update.

#include <cuda.h>

#include <algorithm>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/graph_memory.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

// Runs `answer()` when `graph` is alive.
template <typename Answer>
CUresult WithGraph(CUgraph graph, Answer answer) {
  Lock lock(DriverLock());
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Graphs::Get().IsGraph(graph)) return CUDA_ERROR_INVALID_VALUE;
  return answer();
}

template <typename Answer>
CUresult WithExec(CUgraphExec exec, Answer answer) {
  Lock lock(DriverLock());
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (!Graphs::Get().IsExec(exec)) return CUDA_ERROR_INVALID_VALUE;
  return answer();
}

// CUDA's way to hand out a list: without room the count only; spare room is filled with null.
template <typename T>
CUresult HandOut(const std::vector<T>& found, T* out, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (out == nullptr) {
    *count = found.size();
    return CUDA_SUCCESS;
  }
  const size_t room = *count;
  for (size_t i = 0; i < room; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  *count = std::min(room, found.size());
  return CUDA_SUCCESS;
}

CUresult Edges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  return WithGraph(graph, [&] {
    std::vector<CUgraphNode> sources;
    std::vector<CUgraphNode> targets;
    for (const auto& node : graph->nodes) {
      for (const CUgraphNode target : node->to) {
        sources.push_back(node.get());
        targets.push_back(target);
      }
    }
    if ((from == nullptr) != (to == nullptr) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    size_t room = *count;
    HandOut(sources, from, count);
    return HandOut(targets, to, from == nullptr ? count : &room);
  });
}

CUresult ChangeEdges(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                     bool add) {
  return WithGraph(graph, [&] {
    if (count != 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    if (!add && HasMemoryNodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < count; ++i) {
      const bool known = Graphs::Get().IsNode(from[i]) && Graphs::Get().IsNode(to[i]);
      if (!known || from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i]) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      if (add) {
        AddEdge(from[i], to[i]);
      } else {
        std::erase(from[i]->to, to[i]);
        std::erase(to[i]->from, from[i]);
      }
    }
    return CUDA_SUCCESS;
  });
}

CUresult NodeList(CUgraphNode node, CUgraphNode* out, size_t* count, bool before) {
  Lock lock(DriverLock());
  if (!Graphs::Get().IsNode(node)) return CUDA_ERROR_INVALID_VALUE;
  return HandOut(before ? node->from : node->to, out, count);
}

CUresult Instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return WithGraph(graph, [&] {
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    return Graphs::Get().Instantiate(graph, flags, exec);
  });
}

}  // namespace

CUresult InstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                               CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  params->hErrNode_out = nullptr;
  const CUresult result = Instantiate(exec, graph, params->flags);
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
  return result;
}

CUresult GraphLaunch(CUgraphExec exec, CUstream handle) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (!Graphs::Get().IsExec(exec)) return CUDA_ERROR_INVALID_VALUE;
  if (stream->capture != nullptr) {
    if (HasMemoryNodes(exec->source)) return CUDA_ERROR_NOT_SUPPORTED;
    NodeParams params;
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    if (!stream->capture->invalid) params.child = Graphs::Get().Clone(exec->source);
    return CaptureNode(stream, std::move(params));
  }
  if (stream->legacy) {
    if (const CUresult bad = ForbidOnCapturing(stream); bad != CUDA_SUCCESS) return bad;
  }
  return Graphs::Get().Launch(exec, stream, lock);
}

CUresult GraphUpload(CUgraphExec exec, CUstream handle) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  return Graphs::Get().IsExec(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace simgpu

using simgpu::Graphs;

SIMGPU_API CUresult cuGraphCreate(CUgraph* graph, unsigned flags) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (graph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *graph = Graphs::Get().Create();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuGraphDestroy(CUgraph graph) {
  SIMGPU_ENTER();
  return simgpu::WithGraph(graph, [&] {
    if (graph->owner != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Graphs::Get().Destroy(graph);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphClone(CUgraph* clone, CUgraph graph) {
  SIMGPU_ENTER();
  return simgpu::WithGraph(graph, [&] {
    if (clone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (simgpu::HasMemoryNodes(graph)) return CUDA_ERROR_NOT_SUPPORTED;
    *clone = Graphs::Get().Clone(graph);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphNodeFindInClone(CUgraphNode* found, CUgraphNode original,
                                           CUgraph clone) {
  SIMGPU_ENTER();
  return simgpu::WithGraph(clone, [&] {
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& node : clone->nodes) {
      if (node->origin != original) continue;
      *found = node.get();
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
  });
}

SIMGPU_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  return simgpu::WithGraph(graph, [&] {
    std::vector<CUgraphNode> all;
    for (const auto& node : graph->nodes) all.push_back(node.get());
    return simgpu::HandOut(all, nodes, count);
  });
}

SIMGPU_API CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  SIMGPU_ENTER();
  return simgpu::WithGraph(graph, [&] {
    std::vector<CUgraphNode> roots;
    for (const auto& node : graph->nodes) {
      if (node->from.empty()) roots.push_back(node.get());
    }
    return simgpu::HandOut(roots, nodes, count);
  });
}

// All edges are plain, so the edge data of the newer forms is zero.
SIMGPU_API CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                       CUgraphEdgeData* data, size_t* count) {
  SIMGPU_ENTER();
  const CUresult result = simgpu::Edges(graph, from, to, count);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

SIMGPU_API CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                              const CUgraphNode* to, const CUgraphEdgeData*,
                                              size_t count) {
  SIMGPU_ENTER();
  return simgpu::ChangeEdges(graph, from, to, count, true);
}

SIMGPU_API CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode* from,
                                                 const CUgraphNode* to, const CUgraphEdgeData*,
                                                 size_t count) {
  SIMGPU_ENTER();
  return simgpu::ChangeEdges(graph, from, to, count, false);
}

SIMGPU_API CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* out,
                                                  CUgraphEdgeData* data, size_t* count) {
  SIMGPU_ENTER();
  const CUresult result = simgpu::NodeList(node, out, count, true);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

SIMGPU_API CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode* out,
                                                    CUgraphEdgeData* data, size_t* count) {
  SIMGPU_ENTER();
  const CUresult result = simgpu::NodeList(node, out, count, false);
  if (result == CUDA_SUCCESS && data != nullptr) std::fill(data, data + *count, CUgraphEdgeData{});
  return result;
}

#undef cuGraphGetEdges
#undef cuGraphAddDependencies
#undef cuGraphRemoveDependencies
#undef cuGraphNodeGetDependencies
#undef cuGraphNodeGetDependentNodes

SIMGPU_API CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to,
                                    size_t* count) {
  SIMGPU_ENTER();
  return simgpu::Edges(graph, from, to, count);
}

SIMGPU_API CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from,
                                           const CUgraphNode* to, size_t count) {
  SIMGPU_ENTER();
  return simgpu::ChangeEdges(graph, from, to, count, true);
}

SIMGPU_API CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode* from,
                                              const CUgraphNode* to, size_t count) {
  SIMGPU_ENTER();
  return simgpu::ChangeEdges(graph, from, to, count, false);
}

SIMGPU_API CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* out, size_t* count) {
  SIMGPU_ENTER();
  return simgpu::NodeList(node, out, count, true);
}

SIMGPU_API CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode* out,
                                                 size_t* count) {
  SIMGPU_ENTER();
  return simgpu::NodeList(node, out, count, false);
}

SIMGPU_API CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                                unsigned long long flags) {
  SIMGPU_ENTER();
  return simgpu::Instantiate(exec, graph, flags);
}

SIMGPU_API CUresult cuGraphInstantiate_v2(CUgraphExec* exec, CUgraph graph, CUgraphNode* error,
                                          char* log, size_t log_bytes) {
  SIMGPU_ENTER();
  if (error != nullptr) *error = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return simgpu::Instantiate(exec, graph, 0);
}

SIMGPU_API CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                                 CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  SIMGPU_ENTER();
  return simgpu::InstantiateWithParams(exec, graph, params);
}

SIMGPU_API CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* exec, CUgraph graph,
                                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  SIMGPU_ENTER();
  return simgpu::InstantiateWithParams(exec, graph, params);
}

SIMGPU_API CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t* flags) {
  SIMGPU_ENTER();
  return simgpu::WithExec(exec, [&] {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  SIMGPU_ENTER();
  return simgpu::WithExec(exec, [&] {
    Graphs::Get().DestroyExec(exec);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph,
                                         CUgraphExecUpdateResultInfo* info) {
  SIMGPU_ENTER();
  return simgpu::WithExec(exec, [&] {
    CUgraphExecUpdateResultInfo unwanted{};
    if (!Graphs::Get().IsGraph(graph)) return CUDA_ERROR_INVALID_VALUE;
    return Graphs::Get().Update(exec, graph, info != nullptr ? info : &unwanted);
  });
}

SIMGPU_PTSZ(cuGraphLaunch, GraphLaunch, (CUgraphExec exec, CUstream stream), (exec, stream))
SIMGPU_PTSZ(cuGraphUpload, GraphUpload, (CUgraphExec exec, CUstream stream), (exec, stream))
