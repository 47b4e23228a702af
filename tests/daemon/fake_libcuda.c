// A driver library for tests of the tidemarkd process: one device of FAKE_CUDA_CHUNKS (default 32)
// chunks of 2 MiB. Its memory is counted per process and holds no bytes.

#define _GNU_SOURCE  // memfd_create

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { kMostHandles = 4096 };
static int device_of[kMostHandles];  // 0: free handle; 1: device; 2: host
static int alive;

static int capacity(void) {
  const char* text = getenv("FAKE_CUDA_CHUNKS");
  return text != NULL ? atoi(text) : 32;
}

CUresult cuInit(unsigned flags) { return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuDriverGetVersion(int* version) { return *version = 13000, CUDA_SUCCESS; }

CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }

CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, CUDA_SUCCESS; }

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  snprintf(name, (size_t)size, "Fake %d", device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  memset(uuid->bytes, 0x40 + device, sizeof(uuid->bytes));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  (void)device;
  return *bytes = (size_t)capacity() << 21, CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  return *value = attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID ? 0 : 1, CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  (void)properties, (void)option;
  return *bytes = 2 << 20, CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  (void)bytes, (void)flags;
  const int on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (on_device && alive >= capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 1; i < kMostHandles; ++i) {
    if (device_of[i] != 0) continue;
    device_of[i] = on_device ? 1 : 2;
    alive += on_device;
    return *handle = (CUmemGenericAllocationHandle)i, CUDA_SUCCESS;
  }
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  if (handle == 0 || handle >= kMostHandles || device_of[handle] == 0) abort();
  alive -= device_of[handle] == 1;
  device_of[handle] = 0;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* fd, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  (void)handle, (void)type, (void)flags;
  *(int*)fd = memfd_create("fake-chunk", MFD_CLOEXEC);
  return CUDA_SUCCESS;
}
