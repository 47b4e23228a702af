// Initialisation, devices, their attributes and properties, error names.

#include <cstring>
#include <string>

#include "tests/contract/contract.h"

namespace contract {
namespace {

class DeviceContract : public ContractTest {};

TEST_F(DeviceContract, InitTakesNoFlags) {
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuInit)(1));
  EXPECT_CU(CUDA_SUCCESS, CU(cuInit)(0));
}

TEST_F(DeviceContract, VersionsAreThoseOfTheHeadersOrLater) {
  int driver = 0;
  int runtime = 0;
  CU_OK(CU(cuDriverGetVersion)(&driver));
  RT_OK(cudaRuntimeGetVersion(&runtime));
  EXPECT_GE(driver, CUDA_VERSION);
  EXPECT_GE(runtime, 13000);
  int through_runtime = 0;
  RT_OK(cudaDriverGetVersion(&through_runtime));
  EXPECT_EQ(through_runtime, driver);
}

TEST_F(DeviceContract, OrdinalsBeyondTheCountAreInvalid) {
  int count = 0;
  CUdevice device = 0;
  CU_OK(CU(cuDeviceGetCount)(&count));
  ASSERT_GE(count, 1);
  EXPECT_EQ(count, DeviceCount());
  CU_OK(CU(cuDeviceGet)(&device, count - 1));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&device, count));
  EXPECT_CU(CUDA_ERROR_INVALID_DEVICE, CU(cuDeviceGet)(&device, -1));
}

TEST_F(DeviceContract, NullResultPointersAreInvalidValues) {
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetCount)(nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuDriverGetVersion)(nullptr));
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGet)(nullptr, 0));
}

TEST_F(DeviceContract, NameIsCutToTheBufferAndTerminated) {
  char name[256] = {};
  char start[4] = {'x', 'x', 'x', 'x'};
  CU_OK(CU(cuDeviceGetName)(name, sizeof(name), 0));
  CU_OK(CU(cuDeviceGetName)(start, sizeof(start), 0));
  ASSERT_GE(strlen(name), size_t{3});
  EXPECT_EQ(std::string(start), std::string(name).substr(0, 3));
}

TEST_F(DeviceContract, AttributesDescribeACudaDevice) {
  EXPECT_EQ(DeviceAttribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE), 32);
  EXPECT_GE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_GE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), 1);
  EXPECT_GE(DeviceAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), 7);
  EXPECT_EQ(DeviceAttribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING), 1);
}

TEST_F(DeviceContract, UnknownAttributesAreInvalidValues) {
  int value = 0;
  const auto unknown = static_cast<CUdevice_attribute>(100000);
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuDeviceGetAttribute)(&value, unknown, 0));
}

TEST_F(DeviceContract, PropertiesAgreeWithAttributes) {
  cudaDeviceProp properties;
  size_t bytes = 0;
  char name[256] = {};
  RT_OK(cudaGetDeviceProperties(&properties, 0));
  CU_OK(CU(cuDeviceTotalMem)(&bytes, 0));
  CU_OK(CU(cuDeviceGetName)(name, sizeof(name), 0));
  EXPECT_EQ(properties.totalGlobalMem, bytes);
  EXPECT_STREQ(properties.name, name);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.multiProcessorCount,
            DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_EQ(properties.major, DeviceAttribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  EXPECT_EQ(properties.sharedMemPerBlock,
            static_cast<size_t>(DeviceAttribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)));
}

TEST_F(DeviceContract, RuntimeAndDriverAttributesShareTheirNumbers) {
  int value = 0;
  RT_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(value, DeviceAttribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  EXPECT_RT(cudaErrorInvalidDevice,
            cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, DeviceCount()));
}

TEST_F(DeviceContract, BusIdLeadsBackToTheDevice) {
  for (int device = 0; device < DeviceCount(); ++device) {
    char text[64] = {};
    int found = -1;
    RT_OK(cudaDeviceGetPCIBusId(text, sizeof(text), device));
    RT_OK(cudaDeviceGetByPCIBusId(&found, text));
    EXPECT_EQ(found, device);
  }
}

TEST_F(DeviceContract, DevicesHaveDifferentUuids) {
  CUuuid first = {};
  const CUuuid none = {};
  CU_OK(CU(cuDeviceGetUuid)(&first, 0));
  EXPECT_NE(memcmp(&first, &none, sizeof(first)), 0);
  for (int device = 1; device < DeviceCount(); ++device) {
    CUuuid other = {};
    CU_OK(CU(cuDeviceGetUuid)(&other, device));
    EXPECT_NE(memcmp(&first, &other, sizeof(first)), 0);
  }
}

TEST_F(DeviceContract, DriverErrorsHaveNamesAndSentences) {
  const char* text = nullptr;
  CU_OK(CU(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  CU_OK(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text));
  EXPECT_STREQ(text, "out of memory");
  EXPECT_CU(CUDA_ERROR_INVALID_VALUE, CU(cuGetErrorName)(static_cast<CUresult>(123456), &text));
  EXPECT_EQ(text, nullptr);
}

TEST_F(DeviceContract, RuntimeErrorsHaveNamesAndSentences) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(123456)), "unrecognized error code");
}

TEST_F(DeviceContract, PriorityRangeRunsFromLeastToGreatest) {
  int least = 0;
  int greatest = 0;
  RT_OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  EXPECT_GE(least, greatest);
}

TEST_F(DeviceContract, ALimitThatWasSetIsInForce) {
  size_t before = 0;
  size_t after = 0;
  RT_OK(cudaDeviceGetLimit(&before, cudaLimitStackSize));
  RT_OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
  RT_OK(cudaDeviceGetLimit(&after, cudaLimitStackSize));
  EXPECT_GE(after, size_t{4096});
  RT_OK(cudaDeviceSetLimit(cudaLimitStackSize, before));
  EXPECT_RT(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&after, static_cast<cudaLimit>(100000)));
}

}  // namespace
}  // namespace contract
