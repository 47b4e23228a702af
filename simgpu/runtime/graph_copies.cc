// Copy nodes of graphs, in the four forms the runtime has: boxes, runs, to and from variables.
// Threads: as graph.cc.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/copy.h"
#include "simgpu/runtime/symbol.h"

namespace simgpu::runtime {
namespace {

// What a copy node is to do. One of the forms below fills it.
struct Copy {
  CUDA_MEMCPY3D box = {};
  int code = cudaSuccess;
};

Copy Box(const cudaMemcpy3DParms* params) {
  Copy copy;
  copy.code = DescribeCopy(params, &copy.box);
  return copy;
}

Copy Run(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  Copy copy;
  copy.code = DescribeRun(target, source, bytes, kind, &copy.box);
  return copy;
}

Copy ToSymbol(const Driver& d, const void* symbol, const void* source, const SymbolRange& range,
              cudaMemcpyKind kind) {
  Copy copy;
  void* target = nullptr;
  copy.code = IsToSymbolKind(kind) ? FindRange(d, symbol, range, &target)
                                   : int{cudaErrorInvalidMemcpyDirection};
  return copy.code != cudaSuccess ? copy : Run(target, source, range.bytes, kind);
}

Copy FromSymbol(const Driver& d, void* target, const void* symbol, const SymbolRange& range,
                cudaMemcpyKind kind) {
  Copy copy;
  void* source = nullptr;
  copy.code = IsFromSymbolKind(kind) ? FindRange(d, symbol, range, &source)
                                     : int{cudaErrorInvalidMemcpyDirection};
  return copy.code != cudaSuccess ? copy : Run(target, source, range.bytes, kind);
}

struct Site {
  cudaGraphNode_t* node;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
};

int Add(const Driver& d, const Site& site, const Copy& copy) {
  CUcontext context = nullptr;
  if (copy.code != cudaSuccess) return copy.code;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  return d.cuGraphAddMemcpyNode(site.node, site.graph, site.dependencies, site.count, &copy.box,
                                context);
}

int Set(const Driver& d, cudaGraphNode_t node, const Copy& copy) {
  return copy.code != cudaSuccess ? copy.code : int{d.cuGraphMemcpyNodeSetParams(node, &copy.box)};
}

int SetIn(const Driver& d, cudaGraphExec_t exec, cudaGraphNode_t node, const Copy& copy) {
  CUcontext context = nullptr;
  if (copy.code != cudaSuccess) return copy.code;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  return d.cuGraphExecMemcpyNodeSetParams(exec, node, &copy.box, context);
}

int Get(const Driver& d, cudaGraphNode_t node, cudaMemcpy3DParms* out) {
  CUDA_MEMCPY3D box = {};
  if (out == nullptr) return cudaErrorInvalidValue;
  if (int code = d.cuGraphMemcpyNodeGetParams(node, &box)) return code;
  DescribeCopy(box, out);
  return cudaSuccess;
}

}  // namespace

#define SITE \
  cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count

SIMGPU_CALL(cudaGraphAddMemcpyNode, (SITE, const cudaMemcpy3DParms* params),
            Add(d, {node, graph, dependencies, count}, Box(params)))
SIMGPU_CALL(cudaGraphAddMemcpyNode1D,
            (SITE, void* target, const void* source, size_t bytes, cudaMemcpyKind kind),
            Add(d, {node, graph, dependencies, count}, Run(target, source, bytes, kind)))
SIMGPU_CALL(cudaGraphAddMemcpyNodeToSymbol,
            (SITE, const void* symbol, const void* source, size_t bytes, size_t offset,
             cudaMemcpyKind kind),
            Add(d, {node, graph, dependencies, count},
                ToSymbol(d, symbol, source, {offset, bytes}, kind)))
SIMGPU_CALL(cudaGraphAddMemcpyNodeFromSymbol,
            (SITE, void* target, const void* symbol, size_t bytes, size_t offset,
             cudaMemcpyKind kind),
            Add(d, {node, graph, dependencies, count},
                FromSymbol(d, target, symbol, {offset, bytes}, kind)))

SIMGPU_CALL(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, cudaMemcpy3DParms* params),
            Get(d, node, params))
SIMGPU_CALL(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const cudaMemcpy3DParms* params),
            Set(d, node, Box(params)))
SIMGPU_CALL(cudaGraphMemcpyNodeSetParams1D,
            (cudaGraphNode_t node, void* target, const void* source, size_t bytes,
             cudaMemcpyKind kind),
            Set(d, node, Run(target, source, bytes, kind)))
SIMGPU_CALL(cudaGraphMemcpyNodeSetParamsToSymbol,
            (cudaGraphNode_t node, const void* symbol, const void* source, size_t bytes,
             size_t offset, cudaMemcpyKind kind),
            Set(d, node, ToSymbol(d, symbol, source, {offset, bytes}, kind)))
SIMGPU_CALL(cudaGraphMemcpyNodeSetParamsFromSymbol,
            (cudaGraphNode_t node, void* target, const void* symbol, size_t bytes, size_t offset,
             cudaMemcpyKind kind),
            Set(d, node, FromSymbol(d, target, symbol, {offset, bytes}, kind)))

SIMGPU_CALL(cudaGraphExecMemcpyNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemcpy3DParms* params),
            SetIn(d, exec, node, Box(params)))
SIMGPU_CALL(cudaGraphExecMemcpyNodeSetParams1D,
            (cudaGraphExec_t exec, cudaGraphNode_t node, void* target, const void* source,
             size_t bytes, cudaMemcpyKind kind),
            SetIn(d, exec, node, Run(target, source, bytes, kind)))
SIMGPU_CALL(cudaGraphExecMemcpyNodeSetParamsToSymbol,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const void* symbol, const void* source,
             size_t bytes, size_t offset, cudaMemcpyKind kind),
            SetIn(d, exec, node, ToSymbol(d, symbol, source, {offset, bytes}, kind)))
SIMGPU_CALL(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
            (cudaGraphExec_t exec, cudaGraphNode_t node, void* target, const void* symbol,
             size_t bytes, size_t offset, cudaMemcpyKind kind),
            SetIn(d, exec, node, FromSymbol(d, target, symbol, {offset, bytes}, kind)))

#undef SITE

}  // namespace simgpu::runtime
