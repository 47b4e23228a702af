// Graph nodes by kind: adding, reading, changing, in a graph or in an instance of it. Copies are in
// graph_copies.cc. Threads: as graph.cc.

#include <cuda_runtime_api.h>

#include <cstring>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/copy.h"
#include "simgpu/runtime/registry.h"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS));
static_assert(sizeof(cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS));
static_assert(sizeof(cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));

// Where a new node goes.
struct Site {
  cudaGraphNode_t* node;
  cudaGraph_t graph;
  const cudaGraphNode_t* dependencies;
  size_t count;
};

template <typename In, typename Out>
int DescribeKernel(const Driver& d, const In* in, Out* out) {
  *out = {};
  if (in == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, in->func, &out->kern)) return code;
  out->gridDimX = in->gridDim.x;
  out->gridDimY = in->gridDim.y;
  out->gridDimZ = in->gridDim.z;
  out->blockDimX = in->blockDim.x;
  out->blockDimY = in->blockDim.y;
  out->blockDimZ = in->blockDim.z;
  out->sharedMemBytes = in->sharedMemBytes;
  out->kernelParams = in->kernelParams;
  out->extra = in->extra;
  return cudaSuccess;
}

const void* FunctionOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  return params.kern != nullptr ? StubOf(params.kern) : static_cast<const void*>(params.func);
}

int AddKernel(const Driver& d, const Site& site, const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (int code = DescribeKernel(d, params, &kernel)) return code;
  return d.cuGraphAddKernelNode(site.node, site.graph, site.dependencies, site.count, &kernel);
}

int KernelParams(const Driver& d, cudaGraphNode_t node, cudaKernelNodeParams* out) {
  CUDA_KERNEL_NODE_PARAMS kernel = {};
  if (out == nullptr) return cudaErrorInvalidValue;
  if (int code = d.cuGraphKernelNodeGetParams(node, &kernel)) return code;
  out->func = const_cast<void*>(FunctionOf(kernel));
  out->gridDim = dim3(kernel.gridDimX, kernel.gridDimY, kernel.gridDimZ);
  out->blockDim = dim3(kernel.blockDimX, kernel.blockDimY, kernel.blockDimZ);
  out->sharedMemBytes = kernel.sharedMemBytes;
  out->kernelParams = kernel.kernelParams;
  out->extra = kernel.extra;
  return cudaSuccess;
}

int SetKernel(const Driver& d, cudaGraphNode_t node, const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (int code = DescribeKernel(d, params, &kernel)) return code;
  return d.cuGraphKernelNodeSetParams(node, &kernel);
}

int SetKernelIn(const Driver& d, cudaGraphExec_t exec, cudaGraphNode_t node,
                const cudaKernelNodeParams* params) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  if (int code = DescribeKernel(d, params, &kernel)) return code;
  return d.cuGraphExecKernelNodeSetParams(exec, node, &kernel);
}

const CUDA_MEMSET_NODE_PARAMS* AsDriver(const cudaMemsetParams* params) {
  return reinterpret_cast<const CUDA_MEMSET_NODE_PARAMS*>(params);
}
CUDA_MEMSET_NODE_PARAMS* AsDriver(cudaMemsetParams* params) {
  return reinterpret_cast<CUDA_MEMSET_NODE_PARAMS*>(params);
}
const CUDA_HOST_NODE_PARAMS* AsDriver(const cudaHostNodeParams* params) {
  return reinterpret_cast<const CUDA_HOST_NODE_PARAMS*>(params);
}
CUDA_HOST_NODE_PARAMS* AsDriver(cudaHostNodeParams* params) {
  return reinterpret_cast<CUDA_HOST_NODE_PARAMS*>(params);
}
CUDA_MEM_ALLOC_NODE_PARAMS* AsDriver(cudaMemAllocNodeParams* params) {
  return reinterpret_cast<CUDA_MEM_ALLOC_NODE_PARAMS*>(params);
}
CUkernelNodeAttrID AsDriver(cudaLaunchAttributeID id) {
  return static_cast<CUkernelNodeAttrID>(id);
}

int AddFill(const Driver& d, const Site& site, const cudaMemsetParams* params) {
  CUcontext context = nullptr;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  return d.cuGraphAddMemsetNode(site.node, site.graph, site.dependencies, site.count,
                                AsDriver(params), context);
}

int SetFillIn(const Driver& d, cudaGraphExec_t exec, cudaGraphNode_t node,
              const cudaMemsetParams* params) {
  CUcontext context = nullptr;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  return d.cuGraphExecMemsetNodeSetParams(exec, node, AsDriver(params), context);
}

// The general form differs from the driver's where a context or a kernel is meant.
int DescribeNode(const Driver& d, const cudaGraphNodeParams* in, CUgraphNodeParams* out) {
  CUcontext context = nullptr;
  if (in == nullptr) return cudaErrorInvalidValue;
  if (int code = d.cuCtxGetCurrent(&context)) return code;
  memcpy(out, in, sizeof(*out));
  switch (in->type) {
    case cudaGraphNodeTypeKernel:
      return DescribeKernel(d, &in->kernel, &out->kernel);
    case cudaGraphNodeTypeMemcpy:
      out->memcpy = {};
      out->memcpy.flags = in->memcpy.flags;
      out->memcpy.copyCtx = context;
      return DescribeCopy(&in->memcpy.copyParams, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
      out->memset.ctx = context;
      return cudaSuccess;
    case cudaGraphNodeTypeConditional:
      out->conditional.ctx = context;
      return cudaSuccess;
    default:
      return cudaSuccess;
  }
}

int AddNode(const Driver& d, const Site& site, const cudaGraphEdgeData* edges,
            cudaGraphNodeParams* params) {
  CUgraphNodeParams node;
  if (int code = DescribeNode(d, params, &node)) return code;
  const int code =
      d.cuGraphAddNode(site.node, site.graph, site.dependencies,
                       reinterpret_cast<const CUgraphEdgeData*>(edges), site.count, &node);
  if (code != CUDA_SUCCESS) return code;
  if (params->type == cudaGraphNodeTypeMemAlloc) {
    params->alloc.dptr = reinterpret_cast<void*>(node.alloc.dptr);
  }
  if (params->type == cudaGraphNodeTypeConditional) {
    params->conditional.phGraph_out = node.conditional.phGraph_out;
  }
  return cudaSuccess;
}

int SetNode(const Driver& d, cudaGraphNode_t node, const cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  if (int code = DescribeNode(d, params, &driver_params)) return code;
  return d.cuGraphNodeSetParams(node, &driver_params);
}

int SetNodeIn(const Driver& d, cudaGraphExec_t exec, cudaGraphNode_t node,
              const cudaGraphNodeParams* params) {
  CUgraphNodeParams driver_params;
  if (int code = DescribeNode(d, params, &driver_params)) return code;
  return d.cuGraphExecNodeSetParams(exec, node, &driver_params);
}

int FreeNodeAddress(const Driver& d, cudaGraphNode_t node, void* out) {
  return d.cuGraphMemFreeNodeGetParams(node, static_cast<CUdeviceptr*>(out));
}

}  // namespace

#define SITE \
  cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, size_t count

SIMGPU_CALL(cudaGraphAddNode,
            (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
             const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* params),
            AddNode(d, {node, graph, dependencies, count}, edges, params))
SIMGPU_CALL(cudaGraphNodeSetParams, (cudaGraphNode_t node, cudaGraphNodeParams* params),
            SetNode(d, node, params))
SIMGPU_CALL(cudaGraphExecNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraphNodeParams* params),
            SetNodeIn(d, exec, node, params))

SIMGPU_CALL(cudaGraphAddKernelNode, (SITE, const cudaKernelNodeParams* params),
            AddKernel(d, {node, graph, dependencies, count}, params))
SIMGPU_CALL(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, cudaKernelNodeParams* params),
            KernelParams(d, node, params))
SIMGPU_CALL(cudaGraphKernelNodeSetParams,
            (cudaGraphNode_t node, const cudaKernelNodeParams* params), SetKernel(d, node, params))
SIMGPU_CALL(cudaGraphExecKernelNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaKernelNodeParams* params),
            SetKernelIn(d, exec, node, params))
SIMGPU_CALL(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t target, cudaGraphNode_t source),
            d.cuGraphKernelNodeCopyAttributes(target, source))
SIMGPU_CALL(cudaGraphKernelNodeGetAttribute,
            (cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue* value),
            d.cuGraphKernelNodeGetAttribute(node, AsDriver(id),
                                            reinterpret_cast<CUkernelNodeAttrValue*>(value)))
SIMGPU_CALL(cudaGraphKernelNodeSetAttribute,
            (cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue* value),
            d.cuGraphKernelNodeSetAttribute(node, AsDriver(id),
                                            reinterpret_cast<const CUkernelNodeAttrValue*>(value)))

SIMGPU_CALL(cudaGraphAddMemsetNode, (SITE, const cudaMemsetParams* params),
            AddFill(d, {node, graph, dependencies, count}, params))
SIMGPU_CALL(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, cudaMemsetParams* params),
            d.cuGraphMemsetNodeGetParams(node, AsDriver(params)))
SIMGPU_CALL(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const cudaMemsetParams* params),
            d.cuGraphMemsetNodeSetParams(node, AsDriver(params)))
SIMGPU_CALL(cudaGraphExecMemsetNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaMemsetParams* params),
            SetFillIn(d, exec, node, params))

SIMGPU_CALL(cudaGraphAddHostNode, (SITE, const cudaHostNodeParams* params),
            d.cuGraphAddHostNode(node, graph, dependencies, count, AsDriver(params)))
SIMGPU_CALL(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, cudaHostNodeParams* params),
            d.cuGraphHostNodeGetParams(node, AsDriver(params)))
SIMGPU_CALL(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const cudaHostNodeParams* params),
            d.cuGraphHostNodeSetParams(node, AsDriver(params)))
SIMGPU_CALL(cudaGraphExecHostNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, const cudaHostNodeParams* params),
            d.cuGraphExecHostNodeSetParams(exec, node, AsDriver(params)))

SIMGPU_CALL(cudaGraphAddChildGraphNode, (SITE, cudaGraph_t child),
            d.cuGraphAddChildGraphNode(node, graph, dependencies, count, child))
SIMGPU_CALL(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t* graph),
            d.cuGraphChildGraphNodeGetGraph(node, graph))
SIMGPU_CALL(cudaGraphExecChildGraphNodeSetParams,
            (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
            d.cuGraphExecChildGraphNodeSetParams(exec, node, child))
SIMGPU_CALL(cudaGraphAddEmptyNode, (SITE), d.cuGraphAddEmptyNode(node, graph, dependencies, count))

SIMGPU_CALL(cudaGraphAddEventRecordNode, (SITE, cudaEvent_t event),
            d.cuGraphAddEventRecordNode(node, graph, dependencies, count, event))
SIMGPU_CALL(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t* event),
            d.cuGraphEventRecordNodeGetEvent(node, event))
SIMGPU_CALL(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
            d.cuGraphEventRecordNodeSetEvent(node, event))
SIMGPU_CALL(cudaGraphExecEventRecordNodeSetEvent,
            (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
            d.cuGraphExecEventRecordNodeSetEvent(exec, node, event))
SIMGPU_CALL(cudaGraphAddEventWaitNode, (SITE, cudaEvent_t event),
            d.cuGraphAddEventWaitNode(node, graph, dependencies, count, event))
SIMGPU_CALL(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t* event),
            d.cuGraphEventWaitNodeGetEvent(node, event))
SIMGPU_CALL(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
            d.cuGraphEventWaitNodeSetEvent(node, event))
SIMGPU_CALL(cudaGraphExecEventWaitNodeSetEvent,
            (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
            d.cuGraphExecEventWaitNodeSetEvent(exec, node, event))

SIMGPU_CALL(cudaGraphAddMemAllocNode, (SITE, cudaMemAllocNodeParams* params),
            d.cuGraphAddMemAllocNode(node, graph, dependencies, count, AsDriver(params)))
SIMGPU_CALL(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, cudaMemAllocNodeParams* params),
            d.cuGraphMemAllocNodeGetParams(node, AsDriver(params)))
SIMGPU_CALL(cudaGraphAddMemFreeNode, (SITE, void* pointer),
            d.cuGraphAddMemFreeNode(node, graph, dependencies, count, Address(pointer)))
SIMGPU_CALL(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void* out),
            FreeNodeAddress(d, node, out))
SIMGPU_CALL(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled),
            d.cuGraphNodeSetEnabled(exec, node, enabled))
SIMGPU_CALL(cudaGraphNodeGetEnabled,
            (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* enabled),
            d.cuGraphNodeGetEnabled(exec, node, enabled))

#undef SITE

}  // namespace simgpu::runtime
