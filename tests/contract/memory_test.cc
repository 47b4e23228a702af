// Plain allocations, pinned and managed host memory, and questions about pointers.

#include <cstring>
#include <set>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class MemoryContract : public ContractTest {
 public:
  void TearDown() override {
    cudaGetLastError();
    ContractTest::TearDown();
  }
};

constexpr size_t kMiB = size_t{1} << 20;

TEST_F(MemoryContract, NothingAskedForIsANullPointer) {
  void* pointer = &pointer;
  RT_OK(cudaMalloc(&pointer, 0));
  EXPECT_EQ(pointer, nullptr);
  RT_OK(cudaFree(nullptr));
  RT_OK(cudaFreeHost(nullptr));
}

TEST_F(MemoryContract, TheDriverRefusesToAllocateNothing) {
  CUdeviceptr address = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(&address, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAlloc)(nullptr, 4096));
}

TEST_F(MemoryContract, AllocationsAreAlignedAndApart) {
  std::vector<char*> pointers;
  const size_t sizes[] = {1, 3, 511, 512, 513, 4096, 100000, kMiB + 1};
  for (size_t bytes : sizes) {
    void* pointer = nullptr;
    RT_OK(cudaMalloc(&pointer, bytes));
    EXPECT_EQ(Address(pointer) % 256, CUdeviceptr{0});
    pointers.push_back(static_cast<char*>(pointer));
  }
  for (size_t i = 0; i < pointers.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const bool apart =
          pointers[i] + sizes[i] <= pointers[j] || pointers[j] + sizes[j] <= pointers[i];
      EXPECT_TRUE(apart) << "allocations " << i << " and " << j << " overlap";
    }
  }
  for (char* pointer : pointers) RT_OK(cudaFree(pointer));
}

TEST_F(MemoryContract, OnlyTheStartOfALiveAllocationCanBeFreed) {
  char* pointer = nullptr;
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&pointer), 4096));
  EXPECT_RT(cudaErrorInvalidValue, cudaFree(pointer + 256));
  RT_OK(cudaFree(pointer));
  EXPECT_RT(cudaErrorInvalidValue, cudaFree(pointer));
}

TEST_F(MemoryContract, HostPointersCannotBeFreedAsDeviceMemory) {
  std::vector<char> host(4096);
  EXPECT_RT(cudaErrorInvalidValue, cudaFree(host.data()));
  EXPECT_RT(cudaErrorInvalidValue, cudaFreeHost(host.data()));
}

TEST_F(MemoryContract, FreeBytesFollowAllocations) {
  size_t before = 0;
  size_t during = 0;
  size_t total = 0;
  void* pointer = nullptr;
  RT_OK(cudaMemGetInfo(&before, &total));
  EXPECT_GE(total, before);
  RT_OK(cudaMalloc(&pointer, 64 * kMiB));
  RT_OK(cudaMemGetInfo(&during, &total));
  EXPECT_LE(during + 64 * kMiB, before);
  RT_OK(cudaFree(pointer));
}

TEST_F(MemoryContract, MoreThanTheDeviceHoldsIsOutOfMemory) {
  size_t free_bytes = 0;
  size_t total = 0;
  void* pointer = nullptr;
  RT_OK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT_RT(cudaErrorMemoryAllocation, cudaMalloc(&pointer, total + kMiB));
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY,
            CU(cuMemAlloc)(reinterpret_cast<CUdeviceptr*>(&pointer), total + kMiB));
  size_t after = 0;
  RT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_GE(after + 64 * kMiB, free_bytes);
}

TEST_F(MemoryContract, PitchHoldsARowAndKeepsRowsAligned) {
  void* pointer = nullptr;
  size_t pitch = 0;
  RT_OK(cudaMallocPitch(&pointer, &pitch, 1000, 7));
  EXPECT_GE(pitch, size_t{1000});
  EXPECT_EQ(pitch % 32, size_t{0});
  RT_OK(cudaMemset2D(pointer, pitch, 3, 1000, 7));
  RT_OK(cudaFree(pointer));
}

TEST_F(MemoryContract, BoxAllocationTellsItsShape) {
  cudaPitchedPtr box = {};
  RT_OK(cudaMalloc3D(&box, cudaExtent{100, 5, 3}));
  EXPECT_GE(box.pitch, size_t{100});
  EXPECT_EQ(box.xsize, size_t{100});
  EXPECT_EQ(box.ysize, size_t{5});
  RT_OK(cudaFree(box.ptr));
}

TEST_F(MemoryContract, AddressRangeIsTheWholeAllocation) {
  char* pointer = nullptr;
  CUdeviceptr base = 0;
  size_t bytes = 0;
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&pointer), 3 * kMiB));
  CU_OK(CU(cuMemGetAddressRange)(&base, &bytes, Address(pointer + kMiB)));
  EXPECT_EQ(base, Address(pointer));
  EXPECT_EQ(bytes, 3 * kMiB);
  RT_OK(cudaFree(pointer));
  EXPECT_NE(int{CU(cuMemGetAddressRange)(&base, &bytes, Address(&base))}, int{CUDA_SUCCESS});
}

TEST_F(MemoryContract, DevicePointersSayWhatTheyAre) {
  char* pointer = nullptr;
  cudaPointerAttributes attributes = {};
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&pointer), 4096));
  RT_OK(cudaPointerGetAttributes(&attributes, pointer + 100));
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, pointer + 100);
  RT_OK(cudaFree(pointer));
}

TEST_F(MemoryContract, UnknownHostMemoryIsUnregisteredAndNoError) {
  std::vector<char> host(4096);
  cudaPointerAttributes attributes = {};
  RT_OK(cudaPointerGetAttributes(&attributes, host.data()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  EXPECT_CU(
      CUDA_ERROR_INVALID_VALUE,
      CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Address(host.data())));
}

TEST_F(MemoryContract, BufferIdsAreNeverUsedAgain) {
  std::set<unsigned long long> seen;
  for (int i = 0; i < 8; ++i) {
    void* pointer = nullptr;
    unsigned long long id = 0;
    RT_OK(cudaMalloc(&pointer, 4096));
    CU_OK(CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, Address(pointer)));
    EXPECT_TRUE(seen.insert(id).second) << "id " << id << " came twice";
    RT_OK(cudaFree(pointer));
  }
}

TEST_F(MemoryContract, RangeAttributesAgreeWithTheAllocation) {
  char* pointer = nullptr;
  CUdeviceptr start = 0;
  size_t bytes = 0;
  RT_OK(cudaMalloc(reinterpret_cast<void**>(&pointer), 2 * kMiB));
  CU_OK(CU(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                  Address(pointer + 12345)));
  CU_OK(CU(cuPointerGetAttribute)(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, Address(pointer)));
  EXPECT_EQ(start, Address(pointer));
  EXPECT_EQ(bytes, 2 * kMiB);
  RT_OK(cudaFree(pointer));
}

TEST_F(MemoryContract, PinnedMemoryHasOneAddressForBothSides) {
  Pinned<unsigned> host(1024);
  cudaPointerAttributes attributes = {};
  void* on_device = nullptr;
  RT_OK(cudaPointerGetAttributes(&attributes, host.get()));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  RT_OK(cudaHostGetDevicePointer(&on_device, host.get(), 0));
  EXPECT_EQ(on_device, host.get());
  RT_OK(Fill(static_cast<unsigned*>(on_device), 77, 1024));
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(host[0], 77u);
  EXPECT_EQ(host[1023], 77u);
}

TEST_F(MemoryContract, HostAllocationKeepsItsFlags) {
  void* host = nullptr;
  unsigned flags = 0;
  RT_OK(cudaHostAlloc(&host, 4096, cudaHostAllocPortable | cudaHostAllocMapped));
  RT_OK(cudaHostGetFlags(&flags, host));
  EXPECT_EQ(flags & (cudaHostAllocPortable | cudaHostAllocMapped),
            unsigned{cudaHostAllocPortable | cudaHostAllocMapped});
  RT_OK(cudaFreeHost(host));
  EXPECT_RT(cudaErrorInvalidValue, cudaHostAlloc(&host, 4096, 0x8000));
}

TEST_F(MemoryContract, RegisteredMemoryIsKnownUntilItIsUnregistered) {
  std::vector<char> host(64 * 1024);
  cudaPointerAttributes attributes = {};
  RT_OK(cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault));
  RT_OK(cudaPointerGetAttributes(&attributes, host.data() + 5));
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_RT(cudaErrorHostMemoryAlreadyRegistered,
            cudaHostRegister(host.data(), host.size(), cudaHostRegisterDefault));
  RT_OK(cudaHostUnregister(host.data()));
  RT_OK(cudaPointerGetAttributes(&attributes, host.data() + 5));
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_RT(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host.data()));
}

TEST_F(MemoryContract, RegisteredMemoryIsReachedByKernels) {
  std::vector<unsigned> host(16384);
  void* on_device = nullptr;
  RT_OK(cudaHostRegister(host.data(), host.size() * sizeof(unsigned), cudaHostRegisterMapped));
  RT_OK(cudaHostGetDevicePointer(&on_device, host.data(), 0));
  RT_OK(Fill(static_cast<unsigned*>(on_device), 5, 16384));
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(host, Same(16384, 5));
  RT_OK(cudaHostUnregister(host.data()));
}

TEST_F(MemoryContract, ManagedMemoryIsOneForHostAndDevice) {
  if (DeviceAttribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 0) {
    GTEST_SKIP() << "needs a device with managed memory";
  }
  unsigned* shared = nullptr;
  RT_OK(cudaMallocManaged(reinterpret_cast<void**>(&shared), 4096, cudaMemAttachGlobal));
  for (unsigned i = 0; i < 1024; ++i) shared[i] = i;
  RT_OK(Affine(shared, 3, 1, 1024));
  RT_OK(cudaDeviceSynchronize());
  for (unsigned i = 0; i < 1024; ++i) ASSERT_EQ(shared[i], 3 * i + 1);
  cudaPointerAttributes attributes = {};
  RT_OK(cudaPointerGetAttributes(&attributes, shared));
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  RT_OK(cudaFree(shared));
}

TEST_F(MemoryContract, ManagedMemoryNeedsAnAttachment) {
  void* pointer = nullptr;
  EXPECT_RT(cudaErrorInvalidValue, cudaMallocManaged(&pointer, 4096, 0));
  EXPECT_RT(cudaErrorInvalidValue, cudaMallocManaged(&pointer, 0, cudaMemAttachGlobal));
}

}  // namespace
}  // namespace contract
