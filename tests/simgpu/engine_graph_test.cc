// Graphs and stream capture: what is captured runs at launch and only then, forks and joins hold,
// and illegal calls invalidate a capture as CUDA documents.

#include <gtest/gtest.h>

#include <thread>

#include "tests/simgpu/device.h"

namespace simgpu_tests {
namespace {

void InBothOrders(const std::function<void()>& body) {
  InChild("order=eager", body);
  for (int seed = 0; seed < 8; ++seed) {
    InChild("order=adversarial,race=1,seed=" + std::to_string(seed), body);
  }
}

CUgraphExec Instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  EXPECT_CUDA(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

TEST(EngineGraph, CapturedWorkRunsAtEachLaunchWithItsOwnArguments) {
  InBothOrders([] {
    const CUdeviceptr data = Allocate(64);
    const CUstream stream = NewStream();
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    {
      uint32_t value = 3;  // gone when the graph runs
      EXPECT_CUDA(Add(stream, data, 16, value));
    }
    EXPECT_CUDA(cuStreamEndCapture(stream, &graph));
    EXPECT_IN_CHILD(Read(data, 1)[0] == 0);
    const CUgraphExec exec = Instantiate(graph);
    EXPECT_CUDA(cuGraphDestroy(graph));
    for (int i = 0; i < 4; ++i) EXPECT_CUDA(cuGraphLaunch(exec, stream));
    EXPECT_IN_CHILD(Read(data, 16)[15] == 12);
    EXPECT_CUDA(cuGraphExecDestroy(exec));
  });
}

TEST(EngineGraph, ForkAndJoinByEventsBecomeEdges) {
  InBothOrders([] {
    CUdeviceptr a = Allocate(64);
    CUdeviceptr b = Allocate(64);
    const CUstream origin = NewStream();
    const CUstream branch = NewStream();
    const CUevent fork = NewEvent();
    const CUevent join = NewEvent();
    CUgraph graph = nullptr;
    uint32_t count = 16;
    EXPECT_CUDA(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CUDA(cuMemsetD32Async(a, 5, 16, origin));
    EXPECT_CUDA(cuEventRecord(fork, origin));
    EXPECT_CUDA(cuStreamWaitEvent(branch, fork, 0));
    EXPECT_CUDA(LaunchOn(branch, "copy", {&b, &a, &count}));
    EXPECT_CUDA(cuEventRecord(join, branch));
    EXPECT_CUDA(cuStreamWaitEvent(origin, join, 0));
    EXPECT_CUDA(Add(origin, b, 16, 2));
    EXPECT_CUDA(cuStreamEndCapture(origin, &graph));
    size_t nodes = 0;
    size_t edges = 0;
    EXPECT_CUDA(cuGraphGetNodes(graph, nullptr, &nodes));
    EXPECT_CUDA(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    // set -> copy -> add, and set -> add: the origin still depended on the memset.
    EXPECT_IN_CHILD(nodes == 3 && edges == 3);
    EXPECT_CUDA(cuGraphLaunch(Instantiate(graph), origin));
    EXPECT_CUDA(cuStreamSynchronize(origin));
    EXPECT_IN_CHILD(Read(b, 16)[7] == 7);
  });
}

TEST(EngineGraph, UnjoinedWorkFailsTheCapture) {
  InBothOrders([] {
    const CUdeviceptr data = Allocate(64);
    const CUstream origin = NewStream();
    const CUstream branch = NewStream();
    const CUevent fork = NewEvent();
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CUDA(cuEventRecord(fork, origin));
    EXPECT_CUDA(cuStreamWaitEvent(branch, fork, 0));
    EXPECT_CUDA(Add(branch, data, 16, 1));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, cuStreamEndCapture(origin, &graph));
    EXPECT_IN_CHILD(graph == nullptr);
    EXPECT_CUDA(cuStreamSynchronize(branch));  // it captures no longer
  });
}

TEST(EngineGraph, SynchronisingACapturingStreamInvalidatesTheCapture) {
  InBothOrders([] {
    const CUdeviceptr data = Allocate(64);
    const CUstream stream = NewStream();
    CUgraph graph = nullptr;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CUDA(cuStreamIsCapturing(stream, &status));
    EXPECT_IN_CHILD(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(stream));
    EXPECT_CUDA(cuStreamIsCapturing(stream, &status));
    EXPECT_IN_CHILD(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, Add(stream, data, 16, 1));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    EXPECT_CUDA(cuStreamIsCapturing(stream, &status));
    EXPECT_IN_CHILD(status == CU_STREAM_CAPTURE_STATUS_NONE);
  });
}

TEST(EngineGraph, TheLegacyStreamMayNotBeUsedBesideABlockingCapture) {
  InBothOrders([] {
    const CUdeviceptr data = Allocate(64);
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, Add(CU_STREAM_LEGACY, data, 16, 1));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                cuStreamBeginCapture(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
  });
}

TEST(EngineGraph, UnsafeCallsAreForbiddenByModeAndThread) {
  InBothOrders([] {
    const CUstream stream = NewStream();
    const CUevent event = NewEvent();
    CUgraph graph = nullptr;
    CUcontext context = nullptr;
    EXPECT_CUDA(cuCtxGetCurrent(&context));
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    std::thread([&] {
      EXPECT_CUDA(cuCtxSetCurrent(context));
      EXPECT_CUDA(cuEventQuery(event));
    }).join();
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    EXPECT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_IN_CHILD(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    EXPECT_CUDA(cuEventQuery(event));
    EXPECT_CUDA(cuThreadExchangeStreamCaptureMode(&mode));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuEventQuery(event));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  });
}

TEST(EngineGraph, WaitingForAnEventFromOutsideBreaksTheCapture) {
  InBothOrders([] {
    const CUstream stream = NewStream();
    const CUevent outside = NewEvent();
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuEventRecord(outside, NewStream()));
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, cuStreamWaitEvent(stream, outside, 0));
    EXPECT_CODE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
  });
}

TEST(EngineGraph, ExplicitNodesRunInTheOrderOfTheirEdges) {
  InBothOrders([] {
    CUdeviceptr cell = Allocate(4);
    uint32_t* host = AllocatePinned(8);
    CUcontext context = nullptr;
    CUgraph graph = nullptr;
    EXPECT_CUDA(cuCtxGetCurrent(&context));
    EXPECT_CUDA(cuGraphCreate(&graph, 0));
    CUgraphNode set = nullptr;
    const CUDA_MEMSET_NODE_PARAMS memset = {cell, 0, 1, 4, 1, 1};
    EXPECT_CUDA(cuGraphAddMemsetNode(&set, graph, nullptr, 0, &memset, context));
    uint32_t digit = 2;
    void* params[] = {&cell, &digit};
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = Function("append");
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    kernel.kernelParams = params;
    CUgraphNode append = nullptr;
    EXPECT_CUDA(cuGraphAddKernelNode(&append, graph, &set, 1, &kernel));
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = cell;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host;
    copy.WidthInBytes = 4;
    copy.Height = copy.Depth = 1;
    CUgraphNode out = nullptr;
    EXPECT_CUDA(cuGraphAddMemcpyNode(&out, graph, &append, 1, &copy, context));
    CUgraphNode child = nullptr;
    EXPECT_CUDA(cuGraphAddChildGraphNode(&child, graph, &out, 1, graph));
    CUgraphExec exec = Instantiate(graph);
    EXPECT_CUDA(cuGraphLaunch(exec, nullptr));
    EXPECT_CUDA(cuCtxSynchronize());
    EXPECT_IN_CHILD(host[0] == 12);
    digit = 3;
    EXPECT_CUDA(cuGraphExecKernelNodeSetParams(exec, append, &kernel));
    EXPECT_CUDA(cuGraphLaunch(exec, nullptr));
    EXPECT_CUDA(cuCtxSynchronize());
    // The child, a copy from before, still appends 2 and runs last.
    EXPECT_IN_CHILD(host[0] == 12);
    CUDA_KERNEL_NODE_PARAMS told{};
    EXPECT_CUDA(cuGraphKernelNodeGetParams(append, &told));
    EXPECT_IN_CHILD(*static_cast<uint32_t*>(told.kernelParams[1]) == 2);
  });
}

TEST(EngineGraph, ACapturedGraphLaunchBecomesAChildGraph) {
  InBothOrders([] {
    CUdeviceptr cell = Allocate(4);
    const CUstream stream = NewStream();
    CUgraph inner = nullptr;
    CUgraph outer = nullptr;
    uint32_t digit = 1;
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CUDA(LaunchOn(stream, "append", {&cell, &digit}));
    EXPECT_CUDA(cuStreamEndCapture(stream, &inner));
    const CUgraphExec exec = Instantiate(inner);
    EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT_CUDA(cuGraphLaunch(exec, stream));
    digit = 2;
    EXPECT_CUDA(LaunchOn(stream, "append", {&cell, &digit}));
    EXPECT_CUDA(cuStreamEndCapture(stream, &outer));
    EXPECT_CUDA(cuGraphExecDestroy(exec));
    EXPECT_CUDA(cuGraphLaunch(Instantiate(outer), stream));
    EXPECT_CUDA(cuStreamSynchronize(stream));
    EXPECT_IN_CHILD(Read(cell, 1)[0] == 12);
  });
}

TEST(EngineGraph, ACycleIsRefusedAtInstantiation) {
  InChild("order=eager", [] {
    CUgraph graph = nullptr;
    CUgraphNode nodes[2] = {};
    CUgraphExec exec = nullptr;
    EXPECT_CUDA(cuGraphCreate(&graph, 0));
    EXPECT_CUDA(cuGraphAddEmptyNode(&nodes[0], graph, nullptr, 0));
    EXPECT_CUDA(cuGraphAddEmptyNode(&nodes[1], graph, &nodes[0], 1));
    EXPECT_CUDA(cuGraphAddDependencies(graph, &nodes[1], &nodes[0], nullptr, 1));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
  });
}

TEST(EngineGraph, AnExecutableGraphTakesNewParametersOfTheSameShape) {
  InBothOrders([] {
    const CUdeviceptr data = Allocate(64);
    const CUstream stream = NewStream();
    CUgraph graphs[2] = {};
    for (uint32_t i = 0; i < 2; ++i) {
      EXPECT_CUDA(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
      EXPECT_CUDA(Add(stream, data, 16, 1 + i * 9));
      EXPECT_CUDA(cuStreamEndCapture(stream, &graphs[i]));
    }
    CUgraphExec exec = Instantiate(graphs[0]);
    CUgraphExecUpdateResultInfo info{};
    EXPECT_CUDA(cuGraphLaunch(exec, stream));
    EXPECT_CUDA(cuGraphExecUpdate(exec, graphs[1], &info));
    EXPECT_CUDA(cuGraphLaunch(exec, stream));
    EXPECT_CUDA(cuStreamSynchronize(stream));
    EXPECT_IN_CHILD(Read(data, 1)[0] == 11);
    CUgraph empty = nullptr;
    EXPECT_CUDA(cuGraphCreate(&empty, 0));
    EXPECT_CODE(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, cuGraphExecUpdate(exec, empty, &info));
    EXPECT_IN_CHILD(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  });
}

}  // namespace
}  // namespace simgpu_tests
