/* Calls hooked driver functions one by one, with arguments that a test can recognise in the log. */

#include <cuda.h>
#include <stdio.h>
#include <string.h>

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void*, size_t, CUstream);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr, unsigned char, size_t);
CUresult cuStreamDestroy_v2(CUstream);

static void Copies(CUdeviceptr a, CUdeviceptr b) {
  char host[64] = {0};
  cuMemcpy(a, b, 100);
  cuMemcpyHtoD(a, host, 64);
  cuMemcpyHtoDAsync(a, host, 64, (CUstream)0x20);
  cuMemcpyHtoDAsync_v2_ptsz(a, host, 4, NULL);
  cuMemcpyDtoH(host, a, 64);
  CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                        .srcDevice = a,
                        .srcPitch = 256,
                        .srcXInBytes = 16,
                        .srcY = 1,
                        .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                        .WidthInBytes = 32,
                        .Height = 3};
  cuMemcpy2D(&flat);
  CUdeviceptr to[2] = {a, b}, from[2] = {b, a};
  size_t bytes[2] = {8, 16};
  cuMemcpyBatchAsync(to, from, bytes, 2, NULL, NULL, 0, (CUstream)0x20);
}

static void Memsets(CUdeviceptr a) {
  cuMemsetD32(a, 1, 10);
  cuMemsetD8_v2_ptds(a, 1, 10);
  cuMemsetD2D16Async(a, 64, 1, 8, 4, (CUstream)0x20);
}

static void Launches(CUdeviceptr a) {
  CUlaunchConfig config;
  memset(&config, 0, sizeof(config));
  config.hStream = (CUstream)0x20;
  cuLaunchKernelEx(&config, (CUfunction)0x30, NULL, NULL);
  cuGraphLaunch((CUgraphExec)0x40, (CUstream)0x20);
  cuStreamWriteValue32((CUstream)0x20, a, 1, 0);
}

static void Questions(CUdeviceptr a) {
  CUdeviceptr base = 0;
  size_t bytes = 0, free_bytes = 0, total_bytes = 0;
  int capable = 0;
  cuMemGetAddressRange(&base, &bytes, a + 5);
  cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, a);
  cuMemGetInfo(&free_bytes, &total_bytes);
  printf("offset=%d range=%zu capable=%d free=%zu total=%zu\n", (int)(a + 5 - base) < 0x1000, bytes,
         capable, free_bytes, total_bytes);
}

static void OutsideTheArena(void) {
  CUdeviceptr managed = 0;
  CUmemGenericAllocationHandle handle = 0, huge = 0;
  CUmemAllocationProp device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  CUmemAllocationProp host = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}};
  cuMemAllocManaged(&managed, 300, CU_MEM_ATTACH_GLOBAL);
  cuMemCreate(&handle, 2 << 20, &device, 0);
  int refused = cuMemCreate(&huge, (size_t)2 << 30, &device, 0);
  cuMemRelease(handle);
  cuMemCreate(&handle, 2 << 20, &host, 0);
  cuMemRelease(handle);
  printf("refused=%d\n", refused);
}

/* A mapping keeps the memory when its handle goes. */
static void MappedMemory(void) {
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp device = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
  cuMemCreate(&handle, 4 << 20, &device, 0);
  cuMemMap(0x700000000000, 4 << 20, 0, handle, 0);
  cuMemRelease(handle);
  cuMemUnmap(0x700000000000, 4 << 20);
}

static void HostMemory(void) {
  static char own[64];
  void* memory = NULL;
  cuMemHostAlloc(&memory, 5000, 0);
  cuMemHostRegister(own, 64, 0);
  cuMemHostUnregister(own);
  cuMemFreeHost(memory);
}

static void MipmapsPoolsAndGraphs(void) {
  CUmipmappedArray array = NULL;
  CUDA_ARRAY3D_DESCRIPTOR shape = {
      .Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  CUgraphNode node = NULL;
  CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 100};
  cuMipmappedArrayCreate(&array, &shape, 2);
  cuMipmappedArrayDestroy(array);
  cuDeviceSetMemPool(0, (CUmemoryPool)0x70);
  cuGraphAddMemAllocNode(&node, (CUgraph)0x40, NULL, 0, &params);
}

static void Waits(void) {
  cuStreamSynchronize((CUstream)0x20);
  cuEventSynchronize((CUevent)0x60);
  cuCtxSynchronize();
}

static void StreamsAndContexts(void) {
  CUstream stream = NULL;
  CUgraph graph = NULL;
  cuStreamCreate(&stream, 0);
  cuStreamBeginCapture((CUstream)0x20, CU_STREAM_CAPTURE_MODE_RELAXED);
  cuStreamEndCapture((CUstream)0x20, &graph);
  cuStreamDestroy((CUstream)0x20);
  cuCtxEnablePeerAccess((CUcontext)0x50, 0);
  cuCtxDestroy((CUcontext)0x50);
}

int main(void) {
  CUdeviceptr a = 0, b = 0;
  size_t pitch = 0;
  cuInit(0);
  cuInit(0);
  int alloc = cuMemAlloc(&a, 1000);
  cuMemAllocPitch(&b, &pitch, 100, 10, 4);
  int too_much = cuMemAlloc(&b, (size_t)2 << 30);
  printf("alloc=%d arena=%d too_much=%d\n", alloc, a >> 44 == 5, too_much);
  Copies(0x510000000000, 0x520000000000);
  Memsets(0x510000000000);
  Launches(0x510000000000);
  Questions(a);
  OutsideTheArena();
  MappedMemory();
  HostMemory();
  MipmapsPoolsAndGraphs();
  Waits();
  StreamsAndContexts();
  cuMemFree(a);
  return 0;
}
