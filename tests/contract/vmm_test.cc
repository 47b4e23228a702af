// Virtual memory management: reservations, handles, mappings, access, reference counts, export.

#include <unistd.h>

#include <algorithm>

#include "tests/contract/contract.h"

namespace contract {
namespace {

CUmemAllocationProp DeviceProperties() {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = OnDevice();
  return properties;
}

CUmemAllocationProp Exportable() {
  CUmemAllocationProp properties = DeviceProperties();
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

CUmemAccessDesc DeviceAccess(CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
  CUmemAccessDesc access = {};
  access.location = OnDevice();
  access.flags = flags;
  return access;
}

class VmmContract : public ContractTest {
 public:
  void SetUp() override {
    ContractTest::SetUp();
    if (DeviceAttribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
      GTEST_SKIP() << "needs a device with virtual memory management";
    }
    const CUmemAllocationProp properties = DeviceProperties();
    CU_OK(CU(cuMemGetAllocationGranularity)(&unit_, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }

  size_t unit() const { return unit_; }

  CUmemGenericAllocationHandle Create(size_t bytes,
                                      const CUmemAllocationProp& properties = DeviceProperties()) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemCreate)(&handle, bytes, &properties, 0));
    return handle;
  }

  CUdeviceptr Reserve(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemAddressReserve)(&address, bytes, 0, 0, 0));
    return address;
  }

  void Map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle handle) {
    const CUmemAccessDesc access = DeviceAccess();
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemMap)(address, bytes, 0, handle, 0));
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemSetAccess)(address, bytes, &access, 1));
  }

  // Unmapping does not wait for work that uses the range.
  void UnmapAndFree(CUdeviceptr address, size_t bytes) {
    EXPECT_CU(CUDA_SUCCESS, CU(cuCtxSynchronize)());
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemUnmap)(address, bytes));
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemAddressFree)(address, bytes));
  }

  unsigned WordAt(CUdeviceptr address) {
    unsigned word = 0;
    EXPECT_CU(CUDA_SUCCESS, CU(cuMemcpyDtoH)(&word, address, sizeof(word)));
    return word;
  }

 private:
  size_t unit_ = 0;
};

TEST_F(VmmContract, GranularityIsAPowerOfTwoAndDividesTheRecommendedOne) {
  const CUmemAllocationProp properties = DeviceProperties();
  size_t recommended = 0;
  CU_OK(CU(cuMemGetAllocationGranularity)(&recommended, &properties,
                                          CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  EXPECT_GE(unit(), size_t{4096});
  EXPECT_EQ(unit() & (unit() - 1), size_t{0});
  EXPECT_EQ(recommended % unit(), size_t{0});
}

TEST_F(VmmContract, SizesOffTheGranularityAreRefused) {
  const CUmemAllocationProp properties = DeviceProperties();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&handle, unit() + 4096, &properties, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&handle, 0, &properties, 0));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressReserve)(&address, 0, 0, 0, 0));
}

TEST_F(VmmContract, FlagsAreReserved) {
  const CUmemAllocationProp properties = DeviceProperties();
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemCreate)(&handle, unit(), &properties, 1));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressReserve)(&address, unit(), 0, 0, 1));
}

TEST_F(VmmContract, ReservationsHonourTheirAlignment) {
  const size_t alignment = 32 * unit();
  CUdeviceptr address = 0;
  CU_OK(CU(cuMemAddressReserve)(&address, 4 * unit(), alignment, 0, 0));
  EXPECT_EQ(address % alignment, CUdeviceptr{0});
  CU_OK(CU(cuMemAddressFree)(address, 4 * unit()));
}

TEST_F(VmmContract, ReservationsDoNotOverlapAndCostNoMemory) {
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  RT_OK(cudaMemGetInfo(&before, &total));
  const size_t bytes = size_t{1} << 36;
  const CUdeviceptr first = Reserve(bytes);
  const CUdeviceptr second = Reserve(bytes);
  EXPECT_TRUE(first + bytes <= second || second + bytes <= first);
  RT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_EQ(before, after);
  CU_OK(CU(cuMemAddressFree)(first, bytes));
  CU_OK(CU(cuMemAddressFree)(second, bytes));
}

TEST_F(VmmContract, AReservationIsFreedWholeAndOnce) {
  const CUdeviceptr address = Reserve(4 * unit());
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(address, unit()));
  CU_OK(CU(cuMemAddressFree)(address, 4 * unit()));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemAddressFree)(address, 4 * unit()));
}

TEST_F(VmmContract, NewMemoryReadsZero) {
  const size_t bytes = 2 * unit();
  for (int round = 0; round < 3; ++round) {
    const CUmemGenericAllocationHandle handle = Create(bytes);
    const CUdeviceptr address = Reserve(bytes);
    Map(address, bytes, handle);
    std::vector<unsigned> words(bytes / sizeof(unsigned), 1);
    CU_OK(CU(cuMemcpyDtoH)(words.data(), address, bytes));
    EXPECT_EQ(std::count(words.begin(), words.end(), 0u),
              static_cast<std::ptrdiff_t>(words.size()));
    CU_OK(CU(cuMemsetD32)(address, 0xabcdef01, words.size()));
    CU_OK(CU(cuCtxSynchronize)());
    UnmapAndFree(address, bytes);
    CU_OK(CU(cuMemRelease)(handle));
  }
}

TEST_F(VmmContract, MappingsNeedAReservationAndOffsetZero) {
  const CUmemGenericAllocationHandle handle = Create(2 * unit());
  const CUdeviceptr address = Reserve(2 * unit());
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemMap)(address, unit(), unit(), handle, 0));
  EXPECT_NE(int{CU(cuMemMap)(address + unit(), 2 * unit(), 0, handle, 0)}, int{CUDA_SUCCESS});
  EXPECT_NE(int{CU(cuMemMap)(address, 4 * unit(), 0, handle, 0)}, int{CUDA_SUCCESS});
  EXPECT_NE(int{CU(cuMemMap)(address + 4096, unit(), 0, handle, 0)}, int{CUDA_SUCCESS});
  CU_OK(CU(cuMemRelease)(handle));
  CU_OK(CU(cuMemAddressFree)(address, 2 * unit()));
}

TEST_F(VmmContract, AMappedRangeCannotBeMappedAgain) {
  const CUmemGenericAllocationHandle first = Create(unit());
  const CUmemGenericAllocationHandle second = Create(unit());
  const CUdeviceptr address = Reserve(unit());
  Map(address, unit(), first);
  EXPECT_NE(int{CU(cuMemMap)(address, unit(), 0, second, 0)}, int{CUDA_SUCCESS});
  UnmapAndFree(address, unit());
  CU_OK(CU(cuMemRelease)(first));
  CU_OK(CU(cuMemRelease)(second));
}

TEST_F(VmmContract, AMappingIsUnmappedWhole) {
  const CUmemGenericAllocationHandle handle = Create(2 * unit());
  const CUdeviceptr address = Reserve(2 * unit());
  Map(address, 2 * unit(), handle);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(address, unit()));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemUnmap)(address + unit(), unit()));
  CU_OK(CU(cuMemsetD32)(address, 3, 1));
  CU_OK(CU(cuCtxSynchronize)());
  UnmapAndFree(address, 2 * unit());
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, NeighboursAreUsedAndUnmappedTogether) {
  const CUmemGenericAllocationHandle first = Create(unit());
  const CUmemGenericAllocationHandle second = Create(unit());
  const CUdeviceptr address = Reserve(2 * unit());
  CU_OK(CU(cuMemMap)(address, unit(), 0, first, 0));
  CU_OK(CU(cuMemMap)(address + unit(), unit(), 0, second, 0));
  const CUmemAccessDesc access = DeviceAccess();
  CU_OK(CU(cuMemSetAccess)(address, 2 * unit(), &access, 1));
  const int words = static_cast<int>(2 * unit() / sizeof(unsigned));
  RT_OK(Fill(reinterpret_cast<unsigned*>(address), 42, words));
  EXPECT_EQ(WordAt(address + unit() - 4), 42u);
  EXPECT_EQ(WordAt(address + 2 * unit() - 4), 42u);
  UnmapAndFree(address, 2 * unit());
  CU_OK(CU(cuMemRelease)(first));
  CU_OK(CU(cuMemRelease)(second));
}

TEST_F(VmmContract, AccessIsNoneUntilItIsSet) {
  const CUmemGenericAllocationHandle handle = Create(unit());
  const CUdeviceptr address = Reserve(unit());
  const CUmemLocation location = OnDevice();
  const CUmemAccessDesc access = DeviceAccess();
  unsigned long long flags = 99;
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuMemSetAccess)(address, unit(), &access, 1));
  CU_OK(CU(cuMemMap)(address, unit(), 0, handle, 0));
  CU_OK(CU(cuMemGetAccess)(&flags, &location, address));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_NONE));
  CU_OK(CU(cuMemSetAccess)(address, unit(), &access, 1));
  CU_OK(CU(cuMemGetAccess)(&flags, &location, address));
  EXPECT_EQ(flags, static_cast<unsigned long long>(CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
  UnmapAndFree(address, unit());
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, BytesLiveWhileMappedThoughTheHandleIsReleased) {
  const CUmemGenericAllocationHandle handle = Create(unit());
  const CUdeviceptr address = Reserve(unit());
  Map(address, unit(), handle);
  CU_OK(CU(cuMemsetD32)(address, 17, unit() / 4));
  CU_OK(CU(cuMemRelease)(handle));
  EXPECT_EQ(WordAt(address + unit() - 4), 17u);
  UnmapAndFree(address, unit());
}

TEST_F(VmmContract, MemoryComesBackWithTheLastReference) {
  size_t before = 0;
  size_t held = 0;
  size_t after = 0;
  size_t total = 0;
  const size_t bytes = 64 * unit();
  RT_OK(cudaMemGetInfo(&before, &total));
  const CUmemGenericAllocationHandle handle = Create(bytes);
  const CUdeviceptr address = Reserve(bytes);
  Map(address, bytes, handle);
  CU_OK(CU(cuMemRelease)(handle));
  RT_OK(cudaMemGetInfo(&held, &total));
  EXPECT_LE(held + bytes, before);
  UnmapAndFree(address, bytes);
  RT_OK(cudaMemGetInfo(&after, &total));
  EXPECT_GE(after, held + bytes);
}

TEST_F(VmmContract, RetainedHandlesNeedOneReleaseMore) {
  const CUmemGenericAllocationHandle handle = Create(unit());
  const CUdeviceptr address = Reserve(unit());
  Map(address, unit(), handle);
  CUmemGenericAllocationHandle retained = 0;
  CU_OK(CU(cuMemRetainAllocationHandle)(&retained, reinterpret_cast<void*>(address + 64)));
  EXPECT_EQ(retained, handle);
  UnmapAndFree(address, unit());
  CU_OK(CU(cuMemRelease)(handle));
  CUmemAllocationProp properties = {};
  CU_OK(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, retained));
  CU_OK(CU(cuMemRelease)(retained));
}

TEST_F(VmmContract, PropertiesAreThoseOfTheCreation) {
  const CUmemGenericAllocationHandle handle = Create(unit(), Exportable());
  CUmemAllocationProp properties = {};
  CU_OK(CU(cuMemGetAllocationPropertiesFromHandle)(&properties, handle));
  EXPECT_EQ(properties.type, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(properties.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(properties.location.id, 0);
  EXPECT_EQ(properties.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, OneHandleAtTwoAddressesIsOneMemory) {
  const CUmemGenericAllocationHandle handle = Create(unit());
  const CUdeviceptr first = Reserve(unit());
  const CUdeviceptr second = Reserve(unit());
  Map(first, unit(), handle);
  Map(second, unit(), handle);
  CU_OK(CU(cuMemsetD32)(first, 0x1234, 16));
  CU_OK(CU(cuCtxSynchronize)());
  EXPECT_EQ(WordAt(second + 60), 0x1234u);
  UnmapAndFree(first, unit());
  EXPECT_EQ(WordAt(second), 0x1234u);
  UnmapAndFree(second, unit());
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, AnAddressKeepsWorkingOverARemap) {
  const CUmemGenericAllocationHandle handles[] = {Create(unit()), Create(unit())};
  const CUdeviceptr address = Reserve(unit());
  for (unsigned round = 0; round < 4; ++round) {
    Map(address, unit(), handles[round % 2]);
    EXPECT_EQ(WordAt(address), round < 2 ? 0 : 100 + round - 2);
    RT_OK(Fill(reinterpret_cast<unsigned*>(address), 100 + round, 1));
    CU_OK(CU(cuCtxSynchronize)());
    CU_OK(CU(cuMemUnmap)(address, unit()));
  }
  CU_OK(CU(cuMemAddressFree)(address, unit()));
  for (CUmemGenericAllocationHandle handle : handles) CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, ExportedMemoryIsTheSameMemoryWhenImported) {
  if (DeviceAttribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) == 0) {
    GTEST_SKIP() << "needs export as a file descriptor";
  }
  const CUmemGenericAllocationHandle handle = Create(unit(), Exportable());
  CUmemGenericAllocationHandle imported = 0;
  int fd = -1;
  CU_OK(CU(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  ASSERT_GE(fd, 0);
  CU_OK(CU(cuMemImportFromShareableHandle)(&imported,
                                           reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(fd);
  const CUdeviceptr first = Reserve(unit());
  const CUdeviceptr second = Reserve(unit());
  Map(first, unit(), handle);
  Map(second, unit(), imported);
  CU_OK(CU(cuMemsetD32)(first, 0xfeed, 4));
  CU_OK(CU(cuCtxSynchronize)());
  EXPECT_EQ(WordAt(second + 12), 0xfeedu);
  UnmapAndFree(first, unit());
  CU_OK(CU(cuMemRelease)(handle));
  EXPECT_EQ(WordAt(second), 0xfeedu);
  UnmapAndFree(second, unit());
  CU_OK(CU(cuMemRelease)(imported));
}

TEST_F(VmmContract, OnlyMemoryMadeForItCanBeExported) {
  const CUmemGenericAllocationHandle handle = Create(unit());
  int fd = -1;
  EXPECT_NE(int{CU(cuMemExportToShareableHandle)(&fd, handle,
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)},
            int{CUDA_SUCCESS});
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, HostMemoryIsMappedForDeviceAndHost) {
  if (DeviceAttribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) == 0) {
    GTEST_SKIP() << "needs virtual memory management of host memory";
  }
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = Location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
  size_t bytes = 0;
  CU_OK(CU(cuMemGetAllocationGranularity)(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  const CUmemGenericAllocationHandle handle = Create(bytes, properties);
  const CUdeviceptr address = Reserve(bytes);
  CU_OK(CU(cuMemMap)(address, bytes, 0, handle, 0));
  CUmemAccessDesc access[2] = {DeviceAccess(), DeviceAccess()};
  access[1].location = Location(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
  CU_OK(CU(cuMemSetAccess)(address, bytes, access, 2));
  auto* words = reinterpret_cast<unsigned*>(address);
  words[1] = 6;
  RT_OK(Affine(words, 7, 1, 2));
  RT_OK(cudaDeviceSynchronize());
  EXPECT_EQ(words[0], 1u);
  EXPECT_EQ(words[1], 43u);
  UnmapAndFree(address, bytes);
  CU_OK(CU(cuMemRelease)(handle));
}

TEST_F(VmmContract, CreationBeyondTheDeviceIsOutOfMemory) {
  size_t free_bytes = 0;
  size_t total = 0;
  RT_OK(cudaMemGetInfo(&free_bytes, &total));
  const CUmemAllocationProp properties = DeviceProperties();
  CUmemGenericAllocationHandle handle = 0;
  const size_t bytes = (total / unit() + 2) * unit();
  EXPECT_CU(CUDA_ERROR_OUT_OF_MEMORY, CU(cuMemCreate)(&handle, bytes, &properties, 0));
}

TEST_F(VmmContract, MappedMemoryIsCopiedLikeAnyOther) {
  const size_t bytes = 4 * unit();
  const CUdeviceptr address = Reserve(bytes);
  std::vector<CUmemGenericAllocationHandle> handles;
  for (int i = 0; i < 4; ++i) {
    handles.push_back(Create(unit()));
    Map(address + i * unit(), unit(), handles.back());
  }
  const std::vector<unsigned> words = Counting(bytes / sizeof(unsigned));
  std::vector<unsigned> back(words.size());
  CU_OK(CU(cuMemcpyHtoD)(address, words.data(), bytes));
  CU_OK(CU(cuMemcpyDtoH)(back.data(), address, bytes));
  EXPECT_TRUE(words == back);
  UnmapAndFree(address, bytes);
  for (CUmemGenericAllocationHandle handle : handles) CU_OK(CU(cuMemRelease)(handle));
}

}  // namespace
}  // namespace contract
