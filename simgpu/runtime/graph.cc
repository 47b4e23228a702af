// Graphs as wholes: making, walking, instantiating, launching, user objects. Nodes are in
// graph_nodes.cc. Threads: any; a graph is used by one thread at a time, as CUDA asks.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS));
static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData));

const CUgraphEdgeData* AsDriver(const cudaGraphEdgeData* edges) {
  return reinterpret_cast<const CUgraphEdgeData*>(edges);
}
CUgraphEdgeData* AsDriver(cudaGraphEdgeData* edges) {
  return reinterpret_cast<CUgraphEdgeData*>(edges);
}
CUDA_GRAPH_INSTANTIATE_PARAMS* AsDriver(cudaGraphInstantiateParams* params) {
  return reinterpret_cast<CUDA_GRAPH_INSTANTIATE_PARAMS*>(params);
}

int NodeType(const Driver& d, cudaGraphNode_t node, cudaGraphNodeType* type) {
  CUgraphNodeType driver_type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (type == nullptr) return cudaErrorInvalidValue;
  const int code = d.cuGraphNodeGetType(node, &driver_type);
  if (code == CUDA_SUCCESS) *type = static_cast<cudaGraphNodeType>(driver_type);
  return code;
}

int ExecFlags(const Driver& d, cudaGraphExec_t exec, unsigned long long* flags) {
  cuuint64_t driver_flags = 0;
  if (flags == nullptr) return cudaErrorInvalidValue;
  const int code = d.cuGraphExecGetFlags(exec, &driver_flags);
  if (code == CUDA_SUCCESS) *flags = driver_flags;
  return code;
}

int ConditionalHandle(const Driver& d, cudaGraphConditionalHandle* handle, cudaGraph_t graph,
                      unsigned initial, unsigned flags) {
  CUcontext context = nullptr;
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  return d.cuGraphConditionalHandleCreate(reinterpret_cast<CUgraphConditionalHandle*>(handle),
                                          graph, context, initial, flags);
}

}  // namespace

SIMGPU_CALL(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags), d.cuGraphCreate(graph, flags))
SIMGPU_CALL(cudaGraphDestroy, (cudaGraph_t graph), d.cuGraphDestroy(graph))
SIMGPU_CALL(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), d.cuGraphClone(clone, graph))
SIMGPU_CALL(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char* path, unsigned flags),
            d.cuGraphDebugDotPrint(graph, path, flags))
SIMGPU_CALL(cudaGraphNodeFindInClone,
            (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone),
            d.cuGraphNodeFindInClone(node, original, clone))
SIMGPU_CALL(cudaGraphNodeGetType, (cudaGraphNode_t node, cudaGraphNodeType* type),
            NodeType(d, node, type))
SIMGPU_CALL(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
            d.cuGraphGetNodes(graph, nodes, count))
SIMGPU_CALL(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count),
            d.cuGraphGetRootNodes(graph, nodes, count))
SIMGPU_CALL(cudaGraphGetEdges,
            (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
             cudaGraphEdgeData* edges, size_t* count),
            d.cuGraphGetEdges(graph, from, to, AsDriver(edges), count))
SIMGPU_CALL(cudaGraphNodeGetDependencies,
            (cudaGraphNode_t node, cudaGraphNode_t* dependencies, cudaGraphEdgeData* edges,
             size_t* count),
            d.cuGraphNodeGetDependencies(node, dependencies, AsDriver(edges), count))
SIMGPU_CALL(cudaGraphNodeGetDependentNodes,
            (cudaGraphNode_t node, cudaGraphNode_t* dependents, cudaGraphEdgeData* edges,
             size_t* count),
            d.cuGraphNodeGetDependentNodes(node, dependents, AsDriver(edges), count))
SIMGPU_CALL(cudaGraphAddDependencies,
            (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
             const cudaGraphEdgeData* edges, size_t count),
            d.cuGraphAddDependencies(graph, from, to, AsDriver(edges), count))
SIMGPU_CALL(cudaGraphRemoveDependencies,
            (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
             const cudaGraphEdgeData* edges, size_t count),
            d.cuGraphRemoveDependencies(graph, from, to, AsDriver(edges), count))
SIMGPU_CALL(cudaGraphDestroyNode, (cudaGraphNode_t node), d.cuGraphDestroyNode(node))

SIMGPU_CALL(cudaGraphInstantiate,
            (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
            d.cuGraphInstantiateWithFlags(exec, graph, flags))
SIMGPU_CALL(cudaGraphInstantiateWithFlags,
            (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
            d.cuGraphInstantiateWithFlags(exec, graph, flags))
SIMGPU_CALL_TWINS(cudaGraphInstantiateWithParams, _ptsz,
                  (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams* params),
                  d.cuGraphInstantiateWithParams(exec, graph, AsDriver(params)))
SIMGPU_CALL(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long* flags),
            ExecFlags(d, exec, flags))
SIMGPU_CALL(cudaGraphExecUpdate,
            (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* result),
            d.cuGraphExecUpdate(exec, graph,
                                reinterpret_cast<CUgraphExecUpdateResultInfo*>(result)))
SIMGPU_CALL_TWINS(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
                  d.cuGraphUpload(exec, stream))
SIMGPU_CALL_TWINS(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
                  d.cuGraphLaunch(exec, stream))
SIMGPU_CALL(cudaGraphExecDestroy, (cudaGraphExec_t exec), d.cuGraphExecDestroy(exec))

SIMGPU_CALL(cudaUserObjectCreate,
            (cudaUserObject_t * object, void* pointer, cudaHostFn_t destroy, unsigned references,
             unsigned flags),
            d.cuUserObjectCreate(object, pointer, destroy, references, flags))
SIMGPU_CALL(cudaUserObjectRetain, (cudaUserObject_t object, unsigned count),
            d.cuUserObjectRetain(object, count))
SIMGPU_CALL(cudaUserObjectRelease, (cudaUserObject_t object, unsigned count),
            d.cuUserObjectRelease(object, count))
SIMGPU_CALL(cudaGraphRetainUserObject,
            (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags),
            d.cuGraphRetainUserObject(graph, object, count, flags))
SIMGPU_CALL(cudaGraphReleaseUserObject,
            (cudaGraph_t graph, cudaUserObject_t object, unsigned count),
            d.cuGraphReleaseUserObject(graph, object, count))
SIMGPU_CALL(cudaGraphConditionalHandleCreate,
            (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned initial,
             unsigned flags),
            ConditionalHandle(d, handle, graph, initial, flags))
SIMGPU_CALL(cudaDeviceGraphMemTrim, (int device), d.cuDeviceGraphMemTrim(device))
SIMGPU_CALL(cudaDeviceGetGraphMemAttribute,
            (int device, cudaGraphMemAttributeType attribute, void* value),
            d.cuDeviceGetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute),
                                           value))
SIMGPU_CALL(cudaDeviceSetGraphMemAttribute,
            (int device, cudaGraphMemAttributeType attribute, void* value),
            d.cuDeviceSetGraphMemAttribute(device, static_cast<CUgraphMem_attribute>(attribute),
                                           value))

}  // namespace simgpu::runtime
