// Kernels as objects: attributes, parameters, occupancy, libraries. Threads: any.

#include <cuda_runtime_api.h>

#include <cstring>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/launch_config.h"
#include "simgpu/runtime/registry.h"

namespace simgpu::runtime {
namespace {

struct AttributeReader {
  const Driver& d;
  CUkernel kernel;
  CUdevice device;
  int code = CUDA_SUCCESS;

  int Get(CUfunction_attribute attribute) {
    int value = 0;
    const int result = d.cuKernelGetAttribute(&value, attribute, kernel, device);
    if (code == CUDA_SUCCESS) code = result;
    return value;
  }
  int GetIfKnown(CUfunction_attribute attribute) {
    int value = 0;
    d.cuKernelGetAttribute(&value, attribute, kernel, device);
    return value;
  }
};

int Attributes(const Driver& d, cudaFuncAttributes* out, const void* function) {
  CUkernel kernel = nullptr;
  if (out == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, function, &kernel)) return code;
  AttributeReader reader{d, kernel, ThreadDevice(d)};
  memset(out, 0, sizeof(*out));
  out->sharedSizeBytes = static_cast<size_t>(reader.Get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  out->constSizeBytes = static_cast<size_t>(reader.Get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  out->localSizeBytes = static_cast<size_t>(reader.Get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  out->maxThreadsPerBlock = reader.Get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  out->numRegs = reader.Get(CU_FUNC_ATTRIBUTE_NUM_REGS);
  out->ptxVersion = reader.Get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
  out->binaryVersion = reader.Get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  out->cacheModeCA = reader.Get(CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  out->maxDynamicSharedSizeBytes = reader.Get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  out->preferredShmemCarveout =
      reader.GetIfKnown(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  out->clusterDimMustBeSet = reader.GetIfKnown(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  out->requiredClusterWidth = reader.GetIfKnown(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  out->requiredClusterHeight = reader.GetIfKnown(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  out->requiredClusterDepth = reader.GetIfKnown(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  out->clusterSchedulingPolicyPreference =
      reader.GetIfKnown(CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
  out->nonPortableClusterSizeAllowed =
      reader.GetIfKnown(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  return reader.code;
}

int SetAttribute(const Driver& d, const void* function, cudaFuncAttribute attribute, int value) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel,
                                ThreadDevice(d));
}

int SetCacheConfig(const Driver& d, const void* function, cudaFuncCache config) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuKernelSetCacheConfig(kernel, static_cast<CUfunc_cache>(config), ThreadDevice(d));
}

int Name(const Driver& d, const char** name, const void* function) {
  CUkernel kernel = nullptr;
  if (name == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuKernelGetName(name, kernel);
}

int ParamInfo(const Driver& d, const void* function, size_t index, size_t* offset, size_t* size) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuKernelGetParamInfo(kernel, index, offset, size);
}

int FunctionOf(const Driver& d, cudaFunction_t* out, const void* symbol) {
  CUkernel kernel = nullptr;
  if (out == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, symbol, &kernel)) return code;
  return d.cuKernelGetFunction(out, kernel);
}

int KernelOf(const Driver& d, cudaKernel_t* out, const void* symbol) {
  return out == nullptr ? int{cudaErrorInvalidValue} : FindKernel(d, symbol, out);
}

struct Blocks {
  int size;
  size_t dynamic_bytes;
  unsigned flags;
};

int ActiveBlocks(const Driver& d, int* count, const void* function, const Blocks& blocks) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      count, AsFunction(kernel), blocks.size, blocks.dynamic_bytes, blocks.flags);
}

int AvailableShared(const Driver& d, size_t* bytes, const void* function, int blocks, int size) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  return d.cuOccupancyAvailableDynamicSMemPerBlock(bytes, AsFunction(kernel), blocks, size);
}

using ClusterQuery = decltype(Driver::cuOccupancyMaxActiveClusters);

int Clusters(const Driver& d, ClusterQuery query, int* out, const void* function,
             const cudaLaunchConfig_t* config) {
  CUkernel kernel = nullptr;
  if (config == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, function, &kernel)) return code;
  CUlaunchConfig asked = DriverConfig(*config);
  return query(out, AsFunction(kernel), &asked);
}

CUjit_option* AsDriver(cudaJitOption* options) { return reinterpret_cast<CUjit_option*>(options); }
CUlibraryOption* AsDriver(cudaLibraryOption* options) {
  return reinterpret_cast<CUlibraryOption*>(options);
}

int LibraryKernel(const Driver& d, cudaKernel_t* kernel, cudaLibrary_t library, const char* name) {
  const int code = d.cuLibraryGetKernel(kernel, library, name);
  if (code == CUDA_SUCCESS) RememberKernel(*kernel);
  return code;
}

int LibraryKernels(const Driver& d, cudaKernel_t* kernels, unsigned count, cudaLibrary_t library) {
  const int code = d.cuLibraryEnumerateKernels(kernels, count, library);
  for (unsigned i = 0; code == CUDA_SUCCESS && i < count; ++i) RememberKernel(kernels[i]);
  return code;
}

}  // namespace

SIMGPU_CALL(cudaFuncGetAttributes, (cudaFuncAttributes * out, const void* function),
            Attributes(d, out, function))
SIMGPU_CALL(cudaFuncSetAttribute, (const void* function, cudaFuncAttribute attribute, int value),
            SetAttribute(d, function, attribute, value))
SIMGPU_CALL(cudaFuncSetCacheConfig, (const void* function, cudaFuncCache config),
            SetCacheConfig(d, function, config))
SIMGPU_CALL(cudaFuncGetName, (const char** name, const void* function), Name(d, name, function))
SIMGPU_CALL(cudaFuncGetParamInfo,
            (const void* function, size_t index, size_t* offset, size_t* size),
            ParamInfo(d, function, index, offset, size))
SIMGPU_CALL(cudaGetFuncBySymbol, (cudaFunction_t * out, const void* symbol),
            FunctionOf(d, out, symbol))
SIMGPU_CALL(cudaGetKernel, (cudaKernel_t * out, const void* symbol), KernelOf(d, out, symbol))
SIMGPU_CALL(cudaKernelSetAttributeForDevice,
            (cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device),
            d.cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value, kernel,
                                   device))

SIMGPU_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
            (int* count, const void* function, int block_size, size_t dynamic_bytes),
            ActiveBlocks(d, count, function, {block_size, dynamic_bytes, 0}))
SIMGPU_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
            (int* count, const void* function, int block_size, size_t dynamic_bytes,
             unsigned flags),
            ActiveBlocks(d, count, function, {block_size, dynamic_bytes, flags}))
SIMGPU_CALL(cudaOccupancyAvailableDynamicSMemPerBlock,
            (size_t * bytes, const void* function, int blocks, int block_size),
            AvailableShared(d, bytes, function, blocks, block_size))
SIMGPU_CALL(cudaOccupancyMaxPotentialClusterSize,
            (int* size, const void* function, const cudaLaunchConfig_t* config),
            Clusters(d, d.cuOccupancyMaxPotentialClusterSize, size, function, config))
SIMGPU_CALL(cudaOccupancyMaxActiveClusters,
            (int* count, const void* function, const cudaLaunchConfig_t* config),
            Clusters(d, d.cuOccupancyMaxActiveClusters, count, function, config))

SIMGPU_CALL(cudaLibraryLoadData,
            (cudaLibrary_t * library, const void* code, cudaJitOption* jit, void** jit_values,
             unsigned jit_count, cudaLibraryOption* options, void** values, unsigned count),
            d.cuLibraryLoadData(library, code, AsDriver(jit), jit_values, jit_count,
                                AsDriver(options), values, count))
SIMGPU_CALL(cudaLibraryLoadFromFile,
            (cudaLibrary_t * library, const char* path, cudaJitOption* jit, void** jit_values,
             unsigned jit_count, cudaLibraryOption* options, void** values, unsigned count),
            d.cuLibraryLoadFromFile(library, path, AsDriver(jit), jit_values, jit_count,
                                    AsDriver(options), values, count))
SIMGPU_CALL(cudaLibraryUnload, (cudaLibrary_t library), d.cuLibraryUnload(library))
SIMGPU_CALL(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char* name),
            LibraryKernel(d, kernel, library, name))
SIMGPU_CALL(cudaLibraryGetGlobal,
            (void** address, size_t* bytes, cudaLibrary_t library, const char* name),
            d.cuLibraryGetGlobal(AddressOf(address), bytes, library, name))
SIMGPU_CALL(cudaLibraryGetManaged,
            (void** address, size_t* bytes, cudaLibrary_t library, const char* name),
            d.cuLibraryGetManaged(AddressOf(address), bytes, library, name))
SIMGPU_CALL(cudaLibraryGetUnifiedFunction,
            (void** function, cudaLibrary_t library, const char* symbol),
            d.cuLibraryGetUnifiedFunction(function, library, symbol))
SIMGPU_CALL(cudaLibraryGetKernelCount, (unsigned* count, cudaLibrary_t library),
            d.cuLibraryGetKernelCount(count, library))
SIMGPU_CALL(cudaLibraryEnumerateKernels,
            (cudaKernel_t * kernels, unsigned count, cudaLibrary_t library),
            LibraryKernels(d, kernels, count, library))

}  // namespace simgpu::runtime
