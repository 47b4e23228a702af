// Memory that graphs allocate and free: captured from streams, and nodes made by hand. Where the
// documentation says that something cannot be done without naming the error, any error is accepted.

#include "tests/contract/contract.h"
#include "tests/contract/contract_kernels.h"

namespace contract {
namespace {

constexpr int kCount = 1000;
constexpr size_t kBytes = kCount * sizeof(unsigned);

class GraphMemoryContract : public ContractTest {};

// A graph that allocates, fills with `value`, copies to `out` and, if `frees`, frees.
struct Captured {
  unsigned* memory = nullptr;
  cudaGraph_t graph = nullptr;
};

Captured Capture(cudaStream_t stream, unsigned value, unsigned* out, bool frees) {
  Captured captured;
  EXPECT_RT(cudaSuccess, cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_RT(cudaSuccess,
            cudaMallocAsync(reinterpret_cast<void**>(&captured.memory), kBytes, stream));
  EXPECT_RT(cudaSuccess, cudaMemsetAsync(captured.memory, 0, kBytes, stream));
  EXPECT_RT(cudaSuccess, Affine(captured.memory, 1, value, kCount, stream));
  EXPECT_RT(cudaSuccess,
            cudaMemcpyAsync(out, captured.memory, kBytes, cudaMemcpyDeviceToDevice, stream));
  if (frees) {
    EXPECT_RT(cudaSuccess, cudaFreeAsync(captured.memory, stream));
  }
  EXPECT_RT(cudaSuccess, cudaStreamEndCapture(stream, &captured.graph));
  return captured;
}

bool Fails(int code) { return code != 0; }

TEST_F(GraphMemoryContract, AGraphWorksInMemoryOfItsOwn) {
  Stream stream;
  DeviceWords out(Same(kCount, 0));
  const Captured captured = Capture(stream, 7, out.get(), true);
  cudaGraphExec_t exec = nullptr;
  RT_OK(cudaGraphInstantiate(&exec, captured.graph, 0));
  for (int launch = 0; launch < 3; ++launch) {
    RT_OK(cudaMemset(out.get(), 0, kBytes));
    RT_OK(cudaDeviceSynchronize());
    RT_OK(cudaGraphLaunch(exec, stream));
    RT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(out.Read(), Same(kCount, 7));
  }
  RT_OK(cudaGraphExecDestroy(exec));
  RT_OK(cudaGraphDestroy(captured.graph));
}

TEST_F(GraphMemoryContract, WhatAGraphDoesNotFreeIsFreedOutsideBeforeItIsLaunchedAgain) {
  Stream stream;
  DeviceWords out(Same(kCount, 0));
  const Captured captured = Capture(stream, 5, out.get(), false);
  cudaGraphExec_t exec = nullptr;
  RT_OK(cudaGraphInstantiate(&exec, captured.graph, 0));
  for (int launch = 0; launch < 2; ++launch) {
    RT_OK(cudaGraphLaunch(exec, stream));
    RT_OK(Affine(captured.memory, 10, 1, kCount, stream));
    RT_OK(cudaMemcpyAsync(out.get(), captured.memory, kBytes, cudaMemcpyDeviceToDevice, stream));
    EXPECT_RT(cudaErrorInvalidValue, cudaGraphLaunch(exec, stream));
    RT_OK(cudaFreeAsync(captured.memory, stream));
    RT_OK(cudaStreamSynchronize(stream));
    EXPECT_EQ(out.Read(), Same(kCount, 51));
  }
  RT_OK(cudaGraphExecDestroy(exec));
  RT_OK(cudaGraphDestroy(captured.graph));
}

TEST_F(GraphMemoryContract, AutomaticFreeingLetsItLaunchAgain) {
  Stream stream;
  DeviceWords out(Same(kCount, 0));
  const Captured captured = Capture(stream, 9, out.get(), false);
  cudaGraphExec_t exec = nullptr;
  RT_OK(cudaGraphInstantiate(&exec, captured.graph, cudaGraphInstantiateFlagAutoFreeOnLaunch));
  for (int launch = 0; launch < 3; ++launch) RT_OK(cudaGraphLaunch(exec, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(out.Read(), Same(kCount, 9));
  RT_OK(cudaFreeAsync(captured.memory, stream));
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaGraphExecDestroy(exec));
  RT_OK(cudaGraphDestroy(captured.graph));
}

TEST_F(GraphMemoryContract, NodesMadeByHandSayWhatTheyDo) {
  CUgraph graph = nullptr;
  CUgraphNode allocate = nullptr;
  CUgraphNode release = nullptr;
  CU_OK(CU(cuGraphCreate)(&graph, 0));
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  wanted.bytesize = kBytes;
  CU_OK(CU(cuGraphAddMemAllocNode)(&allocate, graph, nullptr, 0, &wanted));
  EXPECT_NE(wanted.dptr, 0u);
  CU_OK(CU(cuGraphAddMemFreeNode)(&release, graph, &allocate, 1, wanted.dptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE,
            CU(cuGraphAddMemFreeNode)(&release, graph, &allocate, 1, wanted.dptr));
  CUDA_MEM_ALLOC_NODE_PARAMS said{};
  CUdeviceptr freed = 0;
  CU_OK(CU(cuGraphMemAllocNodeGetParams)(allocate, &said));
  CU_OK(CU(cuGraphMemFreeNodeGetParams)(release, &freed));
  EXPECT_EQ(said.bytesize, kBytes);
  EXPECT_EQ(said.dptr, wanted.dptr);
  EXPECT_EQ(freed, wanted.dptr);
  CU_OK(CU(cuGraphDestroy)(graph));
}

TEST_F(GraphMemoryContract, OnlyGraphMemoryIsFreedInAGraph) {
  Stream stream;
  DeviceWords plain(kCount);
  cudaGraph_t graph = nullptr;
  RT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_TRUE(Fails(cudaFreeAsync(plain.get(), stream)));
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) {
    RT_OK(cudaGraphDestroy(graph));
  }
  cudaGetLastError();
}

TEST_F(GraphMemoryContract, SuchAGraphIsNeitherClonedNorNestedNorCutNorInstantiatedTwice) {
  Stream stream;
  DeviceWords out(Same(kCount, 0));
  const Captured captured = Capture(stream, 1, out.get(), true);
  cudaGraph_t other = nullptr;
  cudaGraphNode_t node = nullptr;
  EXPECT_TRUE(Fails(cudaGraphClone(&other, captured.graph)));
  RT_OK(cudaGraphCreate(&other, 0));
  EXPECT_TRUE(Fails(cudaGraphAddChildGraphNode(&node, other, nullptr, 0, captured.graph)));
  size_t count = 1;
  RT_OK(cudaGraphGetRootNodes(captured.graph, &node, &count));
  EXPECT_TRUE(Fails(cudaGraphDestroyNode(node)));
  cudaGraphExec_t first = nullptr;
  cudaGraphExec_t second = nullptr;
  RT_OK(cudaGraphInstantiate(&first, captured.graph, 0));
  EXPECT_TRUE(Fails(cudaGraphInstantiate(&second, captured.graph, 0)));
  RT_OK(cudaGraphExecDestroy(first));
  RT_OK(cudaGraphInstantiate(&second, captured.graph, 0));
  RT_OK(cudaGraphLaunch(second, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(out.Read(), Same(kCount, 1));
  RT_OK(cudaGraphExecDestroy(second));
  RT_OK(cudaGraphDestroy(other));
  RT_OK(cudaGraphDestroy(captured.graph));
  cudaGetLastError();
}

}  // namespace
}  // namespace contract
