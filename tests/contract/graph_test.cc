// Graphs: captured from streams or built by hand, instantiated, replayed, changed; and what capture
// forbids.

#include <algorithm>
#include <atomic>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class GraphContract : public ContractTest {
 public:
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

constexpr int kCount = 2000;

void Begin(cudaStream_t stream, cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
  EXPECT_RT(cudaSuccess, cudaStreamBeginCapture(stream, mode));
}

cudaGraph_t End(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  EXPECT_RT(cudaSuccess, cudaStreamEndCapture(stream, &graph));
  return graph;
}

class Exec {
 public:
  explicit Exec(cudaGraph_t graph) {
    EXPECT_RT(cudaSuccess, cudaGraphInstantiate(&exec_, graph, 0));
  }
  ~Exec() { cudaGraphExecDestroy(exec_); }
  Exec(const Exec&) = delete;
  Exec& operator=(const Exec&) = delete;
  operator cudaGraphExec_t() const { return exec_; }

 private:
  cudaGraphExec_t exec_ = nullptr;
};

std::vector<cudaGraphNodeType> NodeTypes(cudaGraph_t graph) {
  size_t count = 0;
  EXPECT_RT(cudaSuccess, cudaGraphGetNodes(graph, nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  EXPECT_RT(cudaSuccess, cudaGraphGetNodes(graph, nodes.data(), &count));
  std::vector<cudaGraphNodeType> types(count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_RT(cudaSuccess, cudaGraphNodeGetType(nodes[i], &types[i]));
  }
  std::sort(types.begin(), types.end());
  return types;
}

TEST_F(GraphContract, CapturedWorkRunsAtReplayAndNotBefore) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  Begin(stream);
  RT_OK(Affine(device.get(), 3, 1, kCount, stream));
  RT_OK(Affine(device.get(), 2, 0, kCount, stream));
  cudaGraph_t graph = End(stream);
  EXPECT_EQ(device.Read(), Same(kCount, 1));
  Exec exec(graph);
  unsigned want = 1;
  for (int i = 0; i < 5; ++i) {
    RT_OK(cudaGraphLaunch(exec, stream));
    want = (want * 3 + 1) * 2;
  }
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, want));
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, CopiesAndMemsetsAreCapturedToo) {
  Stream stream;
  DeviceWords source(Counting(kCount));
  DeviceWords target(Same(kCount, 7));
  Pinned<unsigned> host(kCount);
  Begin(stream);
  RT_OK(cudaMemsetAsync(target.get(), 0, 40, stream));
  RT_OK(cudaMemcpyAsync(target.get() + 10, source.get(), 400, cudaMemcpyDeviceToDevice, stream));
  RT_OK(cudaMemcpyAsync(host.get(), target.get(), target.bytes(), cudaMemcpyDeviceToHost, stream));
  cudaGraph_t graph = End(stream);
  EXPECT_EQ(NodeTypes(graph).size(), size_t{3});
  Exec exec(graph);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  for (unsigned i = 0; i < kCount; ++i) {
    ASSERT_EQ(host[i], i < 10 ? 0 : i < 110 ? i - 10 : 7) << "at word " << i;
  }
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, ReplayReadsWhatMemoryHoldsThen) {
  Stream stream;
  Pinned<unsigned> host(1);
  DeviceWords device(Same(1, 0));
  Begin(stream);
  RT_OK(cudaMemcpyAsync(device.get(), host.get(), 4, cudaMemcpyHostToDevice, stream));
  cudaGraph_t graph = End(stream);
  Exec exec(graph);
  for (unsigned value : {5u, 6u}) {
    host[0] = value;
    RT_OK(cudaGraphLaunch(exec, stream));
    RT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(device.Read()[0], value);
  }
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, CaptureStatusTellsItself) {
  Stream stream;
  DeviceWords device(kCount);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  RT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
  Begin(stream);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  unsigned long long id = 0;
  cudaGraph_t capturing = nullptr;
  const cudaGraphNode_t* last = nullptr;
  size_t count = 0;
  RT_OK(cudaStreamGetCaptureInfo(stream, &status, &id, &capturing, &last, nullptr, &count));
  EXPECT_EQ(status, cudaStreamCaptureStatusActive);
  EXPECT_NE(capturing, nullptr);
  EXPECT_EQ(count, size_t{1});
  RT_OK(cudaGraphDestroy(End(stream)));
  RT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusNone);
}

TEST_F(GraphContract, SynchronisingACapturingStreamSpoilsTheCapture) {
  Stream stream;
  DeviceWords device(kCount);
  Begin(stream);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  EXPECT_RT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
  cudaGraph_t graph = nullptr;
  EXPECT_RT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
  EXPECT_EQ(graph, nullptr);
  cudaGetLastError();
  RT_OK(Fill(device.get(), 2, kCount, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 2));
}

TEST_F(GraphContract, LegacyStreamCannotBeCaptured) {
  EXPECT_RT(cudaErrorStreamCaptureUnsupported,
            cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
}

TEST_F(GraphContract, LegacyStreamIsOffLimitsDuringCaptureOfABlockingStream) {
  Stream blocking(cudaStreamDefault);
  DeviceWords device(kCount);
  Begin(blocking, cudaStreamCaptureModeRelaxed);
  EXPECT_RT(cudaErrorStreamCaptureImplicit, Fill(device.get(), 1, kCount, cudaStreamLegacy));
  cudaGraph_t graph = nullptr;
  EXPECT_RT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(blocking, &graph));
}

TEST_F(GraphContract, AllocationIsUnsafeDuringGlobalCaptureAndFineWhenRelaxed) {
  Stream stream;
  void* pointer = nullptr;
  Begin(stream, cudaStreamCaptureModeRelaxed);
  RT_OK(cudaMalloc(&pointer, 4096));
  RT_OK(cudaFree(pointer));
  RT_OK(cudaGraphDestroy(End(stream)));
  Begin(stream, cudaStreamCaptureModeGlobal);
  EXPECT_RT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&pointer, 4096));
  cudaGraph_t graph = nullptr;
  EXPECT_RT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
}

TEST_F(GraphContract, CaptureModeIsExchangedPerThread) {
  Stream stream;
  void* pointer = nullptr;
  Begin(stream, cudaStreamCaptureModeGlobal);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  RT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  RT_OK(cudaMalloc(&pointer, 4096));
  RT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(mode, cudaStreamCaptureModeRelaxed);
  RT_OK(cudaGraphDestroy(End(stream)));
  RT_OK(cudaFree(pointer));
}

TEST_F(GraphContract, EventsForkAndJoinACapture) {
  Stream main_stream;
  Stream side;
  Event fork(cudaEventDisableTiming);
  Event join(cudaEventDisableTiming);
  DeviceWords a(Same(kCount, 0));
  DeviceWords b(Same(kCount, 0));
  DeviceWords sum(Same(kCount, 0));
  Begin(main_stream);
  RT_OK(cudaEventRecord(fork, main_stream));
  RT_OK(cudaStreamWaitEvent(side, fork, 0));
  RT_OK(Fill(a.get(), 3, kCount, main_stream));
  RT_OK(Fill(b.get(), 4, kCount, side));
  RT_OK(cudaEventRecord(join, side));
  RT_OK(cudaStreamWaitEvent(main_stream, join, 0));
  RT_OK(tidemark::kernels::Launch(ContractAdd, ShapeFor(kCount, main_stream), a.get(), b.get(),
                                  sum.get(), kCount));
  cudaGraph_t graph = End(main_stream);
  Exec exec(graph);
  RT_OK(cudaGraphLaunch(exec, main_stream));
  RT_OK(cudaStreamSynchronize(main_stream));
  EXPECT_EQ(sum.Read(), Same(kCount, 7));
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, AForkWithoutJoinIsAnError) {
  Stream main_stream;
  Stream side;
  Event fork(cudaEventDisableTiming);
  DeviceWords device(kCount);
  Begin(main_stream);
  RT_OK(cudaEventRecord(fork, main_stream));
  RT_OK(cudaStreamWaitEvent(side, fork, 0));
  RT_OK(Fill(device.get(), 4, kCount, side));
  cudaGraph_t graph = nullptr;
  EXPECT_RT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(main_stream, &graph));
}

TEST_F(GraphContract, CapturedEventsCannotBeAsked) {
  Stream stream;
  Event event;
  DeviceWords device(kCount);
  Begin(stream, cudaStreamCaptureModeRelaxed);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  RT_OK(cudaEventRecord(event, stream));
  EXPECT_RT(cudaErrorCapturedEvent, cudaEventQuery(event));
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
}

void CUDART_CB CountCall(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

TEST_F(GraphContract, HostFunctionsRunAtEveryReplay) {
  Stream stream;
  std::atomic<int> calls{0};
  Begin(stream);
  RT_OK(cudaLaunchHostFunc(stream, CountCall, &calls));
  cudaGraph_t graph = End(stream);
  EXPECT_EQ(calls.load(), 0);
  Exec exec(graph);
  for (int i = 0; i < 3; ++i) RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(calls.load(), 3);
  RT_OK(cudaGraphDestroy(graph));
}

cudaKernelNodeParams AffineNode(void** args) {
  cudaKernelNodeParams params = {};
  params.func = reinterpret_cast<void*>(&ContractAffine);
  params.gridDim = dim3((kCount + kBlock - 1) / kBlock);
  params.blockDim = dim3(kBlock);
  params.kernelParams = args;
  return params;
}

TEST_F(GraphContract, AGraphBuiltByHandRunsInItsOrder) {
  Stream stream;
  DeviceWords device(Same(kCount, 9));
  Pinned<unsigned> host(kCount);
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t fill = nullptr;
  cudaGraphNode_t kernel = nullptr;
  cudaGraphNode_t copy = nullptr;
  RT_OK(cudaGraphCreate(&graph, 0));
  cudaMemsetParams memset_params = {};
  memset_params.dst = device.get();
  memset_params.value = 2;
  memset_params.elementSize = 4;
  memset_params.width = kCount;
  memset_params.height = 1;
  RT_OK(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &memset_params));
  unsigned* data = device.get();
  unsigned factor = 10;
  unsigned term = 1;
  int count = kCount;
  void* args[] = {&data, &factor, &term, &count};
  const cudaKernelNodeParams params = AffineNode(args);
  RT_OK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &params));
  RT_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host.get(), device.get(), device.bytes(),
                                 cudaMemcpyDeviceToHost));
  factor = 1000;  // the node keeps what it was given
  size_t edges = 0;
  RT_OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
  EXPECT_EQ(edges, size_t{2});
  size_t roots = 0;
  RT_OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT_EQ(roots, size_t{1});
  Exec exec(graph);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(host[0], 21u);
  EXPECT_EQ(host[kCount - 1], 21u);
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, NodesTellTheirKinds) {
  Stream stream;
  DeviceWords device(kCount);
  Begin(stream);
  RT_OK(Fill(device.get(), 1, kCount, stream));
  RT_OK(cudaMemsetAsync(device.get(), 0, 4, stream));
  cudaGraph_t graph = End(stream);
  const std::vector<cudaGraphNodeType> types = NodeTypes(graph);
  ASSERT_EQ(types.size(), size_t{2});
  EXPECT_EQ(types[0], cudaGraphNodeTypeKernel);
  EXPECT_EQ(types[1], cudaGraphNodeTypeMemset);
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, AnInstanceOutlivesItsGraph) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  Begin(stream);
  RT_OK(Affine(device.get(), 2, 3, kCount, stream));
  cudaGraph_t graph = End(stream);
  Exec exec(graph);
  RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 5));
}

TEST_F(GraphContract, AnInstanceTakesNewKernelParameters) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  RT_OK(cudaGraphCreate(&graph, 0));
  unsigned* data = device.get();
  unsigned factor = 2;
  unsigned term = 0;
  int count = kCount;
  void* args[] = {&data, &factor, &term, &count};
  const cudaKernelNodeParams params = AffineNode(args);
  RT_OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  Exec exec(graph);
  RT_OK(cudaGraphLaunch(exec, stream));
  factor = 7;
  RT_OK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 14));
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, AChildGraphRunsAsOneNode) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  Begin(stream);
  RT_OK(Affine(device.get(), 2, 1, kCount, stream));
  cudaGraph_t child = End(stream);
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t first = nullptr;
  cudaGraphNode_t second = nullptr;
  RT_OK(cudaGraphCreate(&graph, 0));
  RT_OK(cudaGraphAddChildGraphNode(&first, graph, nullptr, 0, child));
  RT_OK(cudaGraphAddChildGraphNode(&second, graph, &first, 1, child));
  Exec exec(graph);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 7));
  RT_OK(cudaGraphDestroy(graph));
  RT_OK(cudaGraphDestroy(child));
}

TEST_F(GraphContract, ACloneIsAGraphOfItsOwn) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  Begin(stream);
  RT_OK(Affine(device.get(), 2, 1, kCount, stream));
  cudaGraph_t graph = End(stream);
  cudaGraph_t clone = nullptr;
  RT_OK(cudaGraphClone(&clone, graph));
  RT_OK(cudaGraphDestroy(graph));
  EXPECT_EQ(NodeTypes(clone).size(), size_t{1});
  Exec exec(clone);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 3));
  RT_OK(cudaGraphDestroy(clone));
}

TEST_F(GraphContract, AGraphStandsInStreamOrder) {
  Stream stream;
  DeviceWords device(Same(kCount, 1));
  Begin(stream);
  RT_OK(Affine(device.get(), 10, 0, kCount, stream));
  cudaGraph_t graph = End(stream);
  Exec exec(graph);
  RT_OK(Affine(device.get(), 1, 1, kCount, stream));
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(Affine(device.get(), 1, 3, kCount, stream));
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 230));
  RT_OK(cudaGraphDestroy(graph));
}

TEST_F(GraphContract, AnInstanceIsUpdatedFromAGraphOfTheSameShape) {
  Stream stream;
  DeviceWords device(Same(kCount, 0));
  Begin(stream);
  RT_OK(Fill(device.get(), 5, kCount, stream));
  cudaGraph_t first = End(stream);
  Begin(stream);
  RT_OK(Fill(device.get(), 6, kCount, stream));
  cudaGraph_t second = End(stream);
  Exec exec(first);
  cudaGraphExecUpdateResultInfo info = {};
  RT_OK(cudaGraphExecUpdate(exec, second, &info));
  EXPECT_EQ(info.result, cudaGraphExecUpdateSuccess);
  RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(device.Read(), Same(kCount, 6));
  RT_OK(cudaGraphDestroy(first));
  RT_OK(cudaGraphDestroy(second));
}

}  // namespace
}  // namespace contract
