// Stream-ordered allocation and memory pools.

#include "tests/contract/contract.h"

namespace contract {
namespace {

class PoolContract : public ContractTest {
 public:
  void SetUp() override {
    ContractTest::SetUp();
    if (DeviceAttribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) {
      GTEST_SKIP() << "needs a device with memory pools";
    }
  }
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

constexpr int kCount = 4000;
constexpr size_t kBytes = kCount * sizeof(unsigned);

cudaMemPoolProps PoolProperties() {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.handleTypes = cudaMemHandleTypeNone;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  return properties;
}

unsigned long long PoolValue(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  unsigned long long value = 0;
  EXPECT_RT(cudaSuccess, cudaMemPoolGetAttribute(pool, attribute, &value));
  return value;
}

TEST_F(PoolContract, MemoryLivesFromItsAllocationToItsFree) {
  Stream stream;
  Pinned<unsigned> host(kCount);
  for (unsigned round = 0; round < 10; ++round) {
    unsigned* data = nullptr;
    RT_OK(cudaMallocAsync(reinterpret_cast<void**>(&data), kBytes, stream));
    RT_OK(Fill(data, round, kCount, stream));
    RT_OK(Affine(data, 2, 1, kCount, stream));
    RT_OK(cudaMemcpyAsync(host.get(), data, kBytes, cudaMemcpyDeviceToHost, stream));
    RT_OK(cudaFreeAsync(data, stream));
    RT_OK(cudaStreamSynchronize(stream));
    ASSERT_EQ(host[0], 2 * round + 1);
    ASSERT_EQ(host[kCount - 1], 2 * round + 1);
  }
}

TEST_F(PoolContract, QueuedFreesDoNotDisturbQueuedWork) {
  Stream stream;
  DeviceWords sum(Same(kCount, 0));
  for (unsigned i = 1; i <= 20; ++i) {
    unsigned* data = nullptr;
    RT_OK(cudaMallocAsync(reinterpret_cast<void**>(&data), kBytes, stream));
    RT_OK(Fill(data, i, kCount, stream));
    RT_OK(tidemark::kernels::Launch(ContractAdd, ShapeFor(kCount, stream), sum.get(), data,
                                    sum.get(), kCount));
    RT_OK(cudaFreeAsync(data, stream));
  }
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(sum.Read(), Same(kCount, 210));
}

TEST_F(PoolContract, AnotherStreamMayUseItOnceOrdered) {
  Stream first;
  Stream second;
  Event allocated(cudaEventDisableTiming);
  Event used(cudaEventDisableTiming);
  DeviceWords result(kCount);
  unsigned* data = nullptr;
  RT_OK(cudaMallocAsync(reinterpret_cast<void**>(&data), kBytes, first));
  RT_OK(Fill(data, 9, kCount, first));
  RT_OK(cudaEventRecord(allocated, first));
  RT_OK(cudaStreamWaitEvent(second, allocated, 0));
  RT_OK(cudaMemcpyAsync(result.get(), data, kBytes, cudaMemcpyDeviceToDevice, second));
  RT_OK(cudaEventRecord(used, second));
  RT_OK(cudaStreamWaitEvent(first, used, 0));
  RT_OK(cudaFreeAsync(data, first));
  RT_OK(cudaStreamSynchronize(first));
  EXPECT_EQ(result.Read(), Same(kCount, 9));
}

// Nothing waits on the host in between, so that what one stream frees another one gets while it is
// still to be read there; plain memory among it is for all streams at once.
TEST_F(PoolContract, StreamsThatFreeAndAllocateInTurnKeepTheirBytesApart) {
  constexpr int kRounds = 60;
  constexpr int kStreams = 3;
  Stream streams[kStreams];
  Pinned<unsigned> host(kRounds);
  for (unsigned round = 0; round < kRounds; ++round) {
    const cudaStream_t stream = streams[round * 7 % 5 % kStreams];
    const int count = round % 4 == 0 ? 400 * kCount : kCount * static_cast<int>(1 + round % 3 * 40);
    const size_t bytes = static_cast<size_t>(count) * sizeof(unsigned);
    const bool plain = round % 7 == 3;
    unsigned* data = nullptr;
    void** address = reinterpret_cast<void**>(&data);
    RT_OK(plain ? cudaMalloc(address, bytes) : cudaMallocAsync(address, bytes, stream));
    RT_OK(Fill(data, round, count, stream));
    RT_OK(Affine(data, 3, 1, count, stream));
    RT_OK(cudaMemcpyAsync(host.get() + round, data + count - 1, sizeof(unsigned),
                          cudaMemcpyDeviceToHost, stream));
    RT_OK(plain ? cudaFree(data) : cudaFreeAsync(data, stream));
  }
  RT_OK(cudaDeviceSynchronize());
  for (unsigned round = 0; round < kRounds; ++round) EXPECT_EQ(host[round], 3 * round + 1) << round;
}

TEST_F(PoolContract, PlainFreeTakesPoolMemory) {
  Stream stream;
  void* data = nullptr;
  RT_OK(cudaMallocAsync(&data, kBytes, stream));
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaFree(data));
}

TEST_F(PoolContract, PoolMemoryIsDeviceMemoryOfItsPool) {
  Stream stream;
  void* data = nullptr;
  cudaMemPool_t pool = nullptr;
  CUmemoryPool found = nullptr;
  cudaPointerAttributes attributes = {};
  RT_OK(cudaDeviceGetMemPool(&pool, 0));
  RT_OK(cudaMallocAsync(&data, kBytes, stream));
  RT_OK(cudaPointerGetAttributes(&attributes, data));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  CU_OK(CU(cuPointerGetAttribute)(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, Address(data)));
  EXPECT_EQ(found, pool);
  RT_OK(cudaFreeAsync(data, stream));
}

TEST_F(PoolContract, UsedAndReservedBytesAddUp) {
  Stream stream;
  cudaMemPool_t pool = nullptr;
  const cudaMemPoolProps properties = PoolProperties();
  RT_OK(cudaMemPoolCreate(&pool, &properties));
  EXPECT_EQ(PoolValue(pool, cudaMemPoolAttrUsedMemCurrent), 0u);
  void* data = nullptr;
  RT_OK(cudaMallocFromPoolAsync(&data, kBytes, pool, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_GE(PoolValue(pool, cudaMemPoolAttrUsedMemCurrent), kBytes);
  EXPECT_GE(PoolValue(pool, cudaMemPoolAttrReservedMemCurrent),
            PoolValue(pool, cudaMemPoolAttrUsedMemCurrent));
  RT_OK(cudaFreeAsync(data, stream));
  RT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQ(PoolValue(pool, cudaMemPoolAttrUsedMemCurrent), 0u);
  EXPECT_GE(PoolValue(pool, cudaMemPoolAttrUsedMemHigh), kBytes);
  unsigned long long zero = 0;
  RT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
  EXPECT_EQ(PoolValue(pool, cudaMemPoolAttrUsedMemHigh), 0u);
  RT_OK(cudaMemPoolTrimTo(pool, 0));
  RT_OK(cudaMemPoolDestroy(pool));
}

TEST_F(PoolContract, TheReleaseThresholdIsKept) {
  cudaMemPool_t pool = nullptr;
  const cudaMemPoolProps properties = PoolProperties();
  RT_OK(cudaMemPoolCreate(&pool, &properties));
  EXPECT_EQ(PoolValue(pool, cudaMemPoolAttrReleaseThreshold), 0u);
  unsigned long long threshold = 1 << 20;
  RT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT_EQ(PoolValue(pool, cudaMemPoolAttrReleaseThreshold), threshold);
  RT_OK(cudaMemPoolDestroy(pool));
}

TEST_F(PoolContract, ADeviceHasADefaultPoolUntilAnotherIsChosen) {
  Stream stream;
  cudaMemPool_t standard = nullptr;
  cudaMemPool_t current = nullptr;
  cudaMemPool_t own = nullptr;
  const cudaMemPoolProps properties = PoolProperties();
  RT_OK(cudaDeviceGetDefaultMemPool(&standard, 0));
  RT_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(standard, current);
  RT_OK(cudaMemPoolCreate(&own, &properties));
  RT_OK(cudaDeviceSetMemPool(0, own));
  RT_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT_EQ(current, own);
  void* data = nullptr;
  RT_OK(cudaMallocAsync(&data, kBytes, stream));
  EXPECT_GE(PoolValue(own, cudaMemPoolAttrUsedMemCurrent), kBytes);
  RT_OK(cudaFreeAsync(data, stream));
  RT_OK(cudaStreamSynchronize(stream));
  RT_OK(cudaDeviceSetMemPool(0, standard));
  RT_OK(cudaMemPoolDestroy(own));
}

TEST_F(PoolContract, AllocationsOfOnePoolAreApart) {
  Stream stream;
  unsigned* first = nullptr;
  unsigned* second = nullptr;
  RT_OK(cudaMallocAsync(reinterpret_cast<void**>(&first), kBytes, stream));
  RT_OK(cudaMallocAsync(reinterpret_cast<void**>(&second), kBytes, stream));
  EXPECT_EQ(Address(first) % 256, CUdeviceptr{0});
  EXPECT_TRUE(first + kCount <= second || second + kCount <= first);
  RT_OK(cudaFreeAsync(first, stream));
  RT_OK(cudaFreeAsync(second, stream));
}

TEST_F(PoolContract, MoreThanTheDeviceHoldsIsOutOfMemory) {
  Stream stream;
  size_t free_bytes = 0;
  size_t total = 0;
  void* data = nullptr;
  RT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_RT(cudaErrorMemoryAllocation, cudaMallocAsync(&data, 2 * total, stream));
}

TEST_F(PoolContract, AQueuedFreeOfAForeignPointerIsRefused) {
  Stream stream;
  std::vector<char> host(4096);
  EXPECT_RT(cudaErrorInvalidValue, cudaFreeAsync(host.data(), stream));
}

}  // namespace
}  // namespace contract
