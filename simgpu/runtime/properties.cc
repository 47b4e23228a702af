// cudaGetDeviceProperties: one row for each member that a driver attribute answers. Threads: any.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

struct Row {
  CUdevice_attribute attribute;
  size_t offset;
  size_t size;  // 4 or 8 bytes
};

#define ROW(member, attribute)                                         \
  {                                                                    \
    CU_DEVICE_ATTRIBUTE_##attribute, offsetof(cudaDeviceProp, member), \
        sizeof(static_cast<cudaDeviceProp*>(nullptr)->member)          \
  }

constexpr Row kRows[] = {
    ROW(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    ROW(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    ROW(warpSize, WARP_SIZE),
    ROW(memPitch, MAX_PITCH),
    ROW(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    ROW(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    ROW(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    ROW(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    ROW(maxGridSize[0], MAX_GRID_DIM_X),
    ROW(maxGridSize[1], MAX_GRID_DIM_Y),
    ROW(maxGridSize[2], MAX_GRID_DIM_Z),
    ROW(totalConstMem, TOTAL_CONSTANT_MEMORY),
    ROW(major, COMPUTE_CAPABILITY_MAJOR),
    ROW(minor, COMPUTE_CAPABILITY_MINOR),
    ROW(textureAlignment, TEXTURE_ALIGNMENT),
    ROW(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    ROW(multiProcessorCount, MULTIPROCESSOR_COUNT),
    ROW(integrated, INTEGRATED),
    ROW(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    ROW(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    ROW(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    ROW(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    ROW(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    ROW(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    ROW(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    ROW(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    ROW(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    ROW(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    ROW(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    ROW(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    ROW(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    ROW(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    ROW(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    ROW(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    ROW(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    ROW(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    ROW(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    ROW(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    ROW(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    ROW(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    ROW(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    ROW(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    ROW(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    ROW(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    ROW(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    ROW(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
    ROW(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
    ROW(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
    ROW(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
    ROW(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
    ROW(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    ROW(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    ROW(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    ROW(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    ROW(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    ROW(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    ROW(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    ROW(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    ROW(surfaceAlignment, SURFACE_ALIGNMENT),
    ROW(concurrentKernels, CONCURRENT_KERNELS),
    ROW(ECCEnabled, ECC_ENABLED),
    ROW(pciBusID, PCI_BUS_ID),
    ROW(pciDeviceID, PCI_DEVICE_ID),
    ROW(pciDomainID, PCI_DOMAIN_ID),
    ROW(tccDriver, TCC_DRIVER),
    ROW(asyncEngineCount, ASYNC_ENGINE_COUNT),
    ROW(unifiedAddressing, UNIFIED_ADDRESSING),
    ROW(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    ROW(l2CacheSize, L2_CACHE_SIZE),
    ROW(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    ROW(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    ROW(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    ROW(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    ROW(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    ROW(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    ROW(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    ROW(managedMemory, MANAGED_MEMORY),
    ROW(isMultiGpuBoard, MULTI_GPU_BOARD),
    ROW(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    ROW(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    ROW(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    ROW(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    ROW(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    ROW(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    ROW(cooperativeLaunch, COOPERATIVE_LAUNCH),
    ROW(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ROW(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    ROW(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    ROW(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    ROW(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    ROW(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    ROW(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    ROW(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    ROW(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    ROW(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    ROW(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    ROW(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    ROW(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    ROW(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    ROW(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    ROW(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    ROW(ipcEventSupported, IPC_EVENT_SUPPORTED),
    ROW(clusterLaunch, CLUSTER_LAUNCH),
    ROW(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
    ROW(deviceNumaConfig, NUMA_CONFIG),
    ROW(deviceNumaId, NUMA_ID),
    ROW(mpsEnabled, MPS_ENABLED),
    ROW(hostNumaId, HOST_NUMA_ID),
    ROW(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    ROW(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    ROW(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
};
#undef ROW

void Store(cudaDeviceProp* properties, const Row& row, int value) {
  char* member = reinterpret_cast<char*>(properties) + row.offset;
  const size_t wide = static_cast<size_t>(static_cast<unsigned>(value));
  if (row.size == sizeof(size_t)) {
    memcpy(member, &wide, sizeof(wide));
  } else {
    memcpy(member, &value, sizeof(value));
  }
}

int Properties(const Driver& d, cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return cudaErrorInvalidValue;
  CUdevice handle = 0;
  if (int code = d.cuDeviceGet(&handle, device)) return code;
  memset(properties, 0, sizeof(*properties));
  if (int code = d.cuDeviceGetName(properties->name, sizeof(properties->name), handle)) return code;
  if (int code = d.cuDeviceTotalMem(&properties->totalGlobalMem, handle)) return code;
  static_assert(sizeof(CUuuid) == sizeof(cudaUUID_t));
  d.cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&properties->uuid), handle);
  d.cuDeviceGetLuid(properties->luid, &properties->luidDeviceNodeMask, handle);
  for (const Row& row : kRows) {
    int value = 0;  // an attribute that the driver does not know stays zero
    if (d.cuDeviceGetAttribute(&value, row.attribute, handle) == CUDA_SUCCESS) {
      Store(properties, row, value);
    }
  }
  return cudaSuccess;
}

}  // namespace

SIMGPU_QUERY(cudaGetDeviceProperties, (cudaDeviceProp * properties, int device),
             Properties(d, properties, device))

}  // namespace simgpu::runtime
