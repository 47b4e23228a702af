// Stream-ordered allocation and memory pools. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

static_assert(sizeof(cudaMemPoolProps) == sizeof(CUmemPoolProps));
static_assert(sizeof(cudaMemAccessDesc) == sizeof(CUmemAccessDesc));
static_assert(sizeof(cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData));
static_assert(sizeof(cudaMemLocation) == sizeof(CUmemLocation));

const CUmemAccessDesc* AsDriver(const cudaMemAccessDesc* list) {
  return reinterpret_cast<const CUmemAccessDesc*>(list);
}
CUmemLocation* AsDriver(cudaMemLocation* location) {
  return reinterpret_cast<CUmemLocation*>(location);
}
CUmemPoolPtrExportData* AsDriver(cudaMemPoolPtrExportData* data) {
  return reinterpret_cast<CUmemPoolPtrExportData*>(data);
}
CUmemPool_attribute AsDriver(cudaMemPoolAttr attribute) {
  return static_cast<CUmemPool_attribute>(attribute);
}
CUmemAllocationHandleType AsDriver(cudaMemAllocationHandleType type) {
  return static_cast<CUmemAllocationHandleType>(type);
}
CUmemAllocationType AsDriver(cudaMemAllocationType type) {
  return static_cast<CUmemAllocationType>(type);
}

int Access(const Driver& d, cudaMemAccessFlags* flags, cudaMemPool_t pool, cudaMemLocation* where) {
  CUmemAccess_flags driver_flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (flags == nullptr) return cudaErrorInvalidValue;
  const int code = d.cuMemPoolGetAccess(&driver_flags, pool, AsDriver(where));
  if (code == CUDA_SUCCESS) *flags = static_cast<cudaMemAccessFlags>(driver_flags);
  return code;
}

}  // namespace

SIMGPU_CALL_TWINS(cudaMallocAsync, _ptsz, (void** pointer, size_t bytes, cudaStream_t stream),
                  d.cuMemAllocAsync(AddressOf(pointer), bytes, stream))
SIMGPU_CALL_TWINS(cudaFreeAsync, _ptsz, (void* pointer, cudaStream_t stream),
                  d.cuMemFreeAsync(Address(pointer), stream))
SIMGPU_CALL_TWINS(cudaMallocFromPoolAsync, _ptsz,
                  (void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
                  d.cuMemAllocFromPoolAsync(AddressOf(pointer), bytes, pool, stream))

SIMGPU_CALL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
            d.cuDeviceGetDefaultMemPool(pool, device))
SIMGPU_CALL(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
            d.cuDeviceGetMemPool(pool, device))
SIMGPU_CALL(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
            d.cuDeviceSetMemPool(device, pool))
SIMGPU_CALL(cudaMemGetDefaultMemPool,
            (cudaMemPool_t * pool, cudaMemLocation* where, cudaMemAllocationType type),
            d.cuMemGetDefaultMemPool(pool, AsDriver(where), AsDriver(type)))
SIMGPU_CALL(cudaMemGetMemPool,
            (cudaMemPool_t * pool, cudaMemLocation* where, cudaMemAllocationType type),
            d.cuMemGetMemPool(pool, AsDriver(where), AsDriver(type)))
SIMGPU_CALL(cudaMemSetMemPool,
            (cudaMemLocation * where, cudaMemAllocationType type, cudaMemPool_t pool),
            d.cuMemSetMemPool(AsDriver(where), AsDriver(type), pool))
SIMGPU_CALL(cudaMemPoolCreate, (cudaMemPool_t * pool, const cudaMemPoolProps* properties),
            d.cuMemPoolCreate(pool, reinterpret_cast<const CUmemPoolProps*>(properties)))
SIMGPU_CALL(cudaMemPoolDestroy, (cudaMemPool_t pool), d.cuMemPoolDestroy(pool))
SIMGPU_CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), d.cuMemPoolTrimTo(pool, keep))
SIMGPU_CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
            d.cuMemPoolSetAttribute(pool, AsDriver(attribute), value))
SIMGPU_CALL(cudaMemPoolGetAttribute, (cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value),
            d.cuMemPoolGetAttribute(pool, AsDriver(attribute), value))
SIMGPU_CALL(cudaMemPoolSetAccess, (cudaMemPool_t pool, const cudaMemAccessDesc* list, size_t count),
            d.cuMemPoolSetAccess(pool, AsDriver(list), count))
SIMGPU_CALL(cudaMemPoolGetAccess,
            (cudaMemAccessFlags * flags, cudaMemPool_t pool, cudaMemLocation* where),
            Access(d, flags, pool, where))
SIMGPU_CALL(cudaMemPoolExportToShareableHandle,
            (void* handle, cudaMemPool_t pool, cudaMemAllocationHandleType type, unsigned flags),
            d.cuMemPoolExportToShareableHandle(handle, pool, AsDriver(type), flags))
SIMGPU_CALL(cudaMemPoolImportFromShareableHandle,
            (cudaMemPool_t * pool, void* handle, cudaMemAllocationHandleType type, unsigned flags),
            d.cuMemPoolImportFromShareableHandle(pool, handle, AsDriver(type), flags))
SIMGPU_CALL(cudaMemPoolExportPointer, (cudaMemPoolPtrExportData * data, void* pointer),
            d.cuMemPoolExportPointer(AsDriver(data), Address(pointer)))
SIMGPU_CALL(cudaMemPoolImportPointer,
            (void** pointer, cudaMemPool_t pool, cudaMemPoolPtrExportData* data),
            d.cuMemPoolImportPointer(AddressOf(pointer), pool, AsDriver(data)))

}  // namespace simgpu::runtime
