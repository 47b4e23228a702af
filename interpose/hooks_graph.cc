// Graphs that the job builds node by node. Their addresses never pass the gate of a capture, so
// each node's are pinned as it is made or changed. Pins are not taken back when a node changes: a
// pin that stays too long costs memory, one that ends too early costs the result.

#include <string.h>

#include "interpose/hook_gate.h"
#include "interpose/resolve.h"

namespace tidemark::interpose {
namespace {

void PinWords(const Guard& guard, const void* value, size_t bytes) {
  const char* at = static_cast<const char*>(value);
  for (size_t i = 0; i + sizeof(CUdeviceptr) <= bytes; i += sizeof(CUdeviceptr)) {
    CUdeviceptr word;
    memcpy(&word, at + i, sizeof(word));
    if (word != 0) ManagerPin(guard, word, 0, PinReason::kGraph);
  }
}

// Pins what `params` of a kernel may point to; `info` tells the size of each parameter.
template <typename Info, typename Kernel>
void PinParams(const Guard& guard, Info info, Kernel kernel, void** params) {
  if (info == nullptr) return;
  size_t offset = 0;
  size_t bytes = 0;
  for (size_t i = 0; info(kernel, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
    PinWords(guard, params[i], bytes);
  }
}

void PinExtra(const Guard& guard, void** extra) {
  const void* block = nullptr;
  size_t bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) block = extra[1];
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const size_t*>(extra[1]);
  }
  if (block != nullptr) PinWords(guard, block, bytes);
}

// Either `function` or `kernel` is set.
void PinKernel(const Guard& guard, CUfunction function, CUkernel kernel, void** params,
               void** extra) {
  if (extra != nullptr) PinExtra(guard, extra);
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  if (driver == nullptr || params == nullptr) return;
  if (function != nullptr) return PinParams(guard, driver->cuFuncGetParamInfo, function, params);
  PinParams(guard, driver->cuKernelGetParamInfo, kernel, params);
}

void Pin(const Guard& guard, const CUDA_KERNEL_NODE_PARAMS_v1& node) {
  PinKernel(guard, node.func, nullptr, node.kernelParams, node.extra);
}
void Pin(const Guard& guard, const CUDA_KERNEL_NODE_PARAMS_v2& node) {
  PinKernel(guard, node.func, node.kern, node.kernelParams, node.extra);
}

void Pin(const Guard& guard, const CUDA_MEMCPY3D& copy) {
  ManagerPin(guard, copy.srcDevice, 0, PinReason::kGraph);
  ManagerPin(guard, copy.dstDevice, 0, PinReason::kGraph);
  ManagerPin(guard, reinterpret_cast<CUdeviceptr>(copy.srcHost), 0, PinReason::kGraph);
  ManagerPin(guard, reinterpret_cast<CUdeviceptr>(copy.dstHost), 0, PinReason::kGraph);
}

void Pin(const Guard& guard, const CUDA_MEMSET_NODE_PARAMS_v1& node) {
  ManagerPin(guard, node.dst, 0, PinReason::kGraph);
}

void Pin(const Guard& guard, const CUgraphNodeParams& node) {
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      PinKernel(guard, node.kernel.func, node.kernel.kern, node.kernel.kernelParams,
                node.kernel.extra);
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      Pin(guard, node.memcpy.copyParams);
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      ManagerPin(guard, node.memset.dst, 0, PinReason::kGraph);
      break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      ManagerGraphAllocates(guard);
      break;
    default:
      break;
  }
}

template <typename Node, typename Call>
CUresult Pinned(const Node* node, const Call& call) {
  Guard guard;
  if (Manages(guard) && node != nullptr) Pin(guard, *node);
  return call();
}

}  // namespace
}  // namespace tidemark::interpose

// cuda.h renames these to their second version; both are hooked.
#undef cuGraphAddKernelNode
#undef cuGraphAddNode
#undef cuGraphKernelNodeSetParams
#undef cuGraphExecKernelNodeSetParams

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

#define TIDEMARK_NODE(name, parameters, arguments)                         \
  CUresult Hook_##name parameters {                                        \
    return Pinned(params, [&] { return tidemark_real_##name arguments; }); \
  }

#define TIDEMARK_ADD_NODE(name, Params)                                                           \
  TIDEMARK_NODE(name,                                                                             \
                (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t after_count, \
                 const Params* params),                                                           \
                (node, graph, after, after_count, params))
TIDEMARK_ADD_NODE(cuGraphAddKernelNode, CUDA_KERNEL_NODE_PARAMS_v1)
TIDEMARK_ADD_NODE(cuGraphAddKernelNode_v2, CUDA_KERNEL_NODE_PARAMS_v2)

#define TIDEMARK_ADD_NODE_IN(name, Params)                                                        \
  TIDEMARK_NODE(name,                                                                             \
                (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t after_count, \
                 const Params* params, CUcontext context),                                        \
                (node, graph, after, after_count, params, context))
TIDEMARK_ADD_NODE_IN(cuGraphAddMemcpyNode, CUDA_MEMCPY3D)
TIDEMARK_ADD_NODE_IN(cuGraphAddMemsetNode, CUDA_MEMSET_NODE_PARAMS)

CUresult Hook_cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                     size_t after_count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Guard guard;
  if (Manages(guard)) ManagerGraphAllocates(guard);
  return tidemark_real_cuGraphAddMemAllocNode(node, graph, after, after_count, params);
}

TIDEMARK_NODE(cuGraphAddNode,
              (CUgraphNode * node, CUgraph graph, const CUgraphNode* after, size_t after_count,
               CUgraphNodeParams* params),
              (node, graph, after, after_count, params))
TIDEMARK_NODE(cuGraphAddNode_v2,
              (CUgraphNode * node, CUgraph graph, const CUgraphNode* after,
               const CUgraphEdgeData* edges, size_t after_count, CUgraphNodeParams* params),
              (node, graph, after, edges, after_count, params))

TIDEMARK_NODE(cuGraphKernelNodeSetParams,
              (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params), (node, params))
TIDEMARK_NODE(cuGraphKernelNodeSetParams_v2,
              (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params), (node, params))
TIDEMARK_NODE(cuGraphMemcpyNodeSetParams, (CUgraphNode node, const CUDA_MEMCPY3D* params),
              (node, params))
TIDEMARK_NODE(cuGraphMemsetNodeSetParams, (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params),
              (node, params))
TIDEMARK_NODE(cuGraphNodeSetParams, (CUgraphNode node, CUgraphNodeParams* params), (node, params))

TIDEMARK_NODE(cuGraphExecKernelNodeSetParams,
              (CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* params),
              (graph, node, params))
TIDEMARK_NODE(cuGraphExecKernelNodeSetParams_v2,
              (CUgraphExec graph, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* params),
              (graph, node, params))
TIDEMARK_NODE(cuGraphExecMemcpyNodeSetParams,
              (CUgraphExec graph, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext context),
              (graph, node, params, context))
TIDEMARK_NODE(cuGraphExecMemsetNodeSetParams,
              (CUgraphExec graph, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
               CUcontext context),
              (graph, node, params, context))
TIDEMARK_NODE(cuGraphExecNodeSetParams,
              (CUgraphExec graph, CUgraphNode node, CUgraphNodeParams* params),
              (graph, node, params))
