// Memory pools. An allocation gets its address at once and becomes usable when its place in the
// stream is reached; a free ends it there, and the memory stays with the pool until it is trimmed
// or the device runs short. Kinder than hardware nowhere: memory before its allocation, or after
// its free, in stream order is an illegal access. Thread rule: every entry point takes the driver
// lock.

#include <cuda.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "simgpu/driver/alloc.h"
#include "simgpu/driver/engine.h"
#include "simgpu/driver/graph_memory.h"
#include "simgpu/driver/pool.h"
#include "simgpu/driver/state.h"
#include "simgpu/driver/stream.h"

struct CUmemPoolHandle_st {
  int device = 0;
  bool is_default = false;
  bool destroyed = false;
  cuuint64_t release_threshold = 0;
  int reuse[3] = {1, 1, 1};
  cuuint64_t used = 0;
  cuuint64_t used_high = 0;
  cuuint64_t reserved = 0;
  cuuint64_t reserved_high = 0;
  std::map<int, CUmemAccess_flags> access;
  std::vector<CUdeviceptr> idle;  // ranges that are freed and kept
};

namespace simgpu {
namespace {

using Guard = std::lock_guard<std::recursive_mutex>;

struct Pools {
  std::map<int, CUmemoryPool> defaults;
  std::map<int, CUmemoryPool> current;
  std::set<CUmemoryPool> alive;
};

Pools& State() {
  static auto* pools = new Pools;
  return *pools;
}

CUmemoryPool NewPool(int device) {
  auto* pool = new CUmemPoolHandle_st;
  pool->device = device;
  State().alive.insert(pool);
  return pool;
}

CUmemoryPool DefaultPool(int device) {
  CUmemoryPool& pool = State().defaults[device];
  if (pool == nullptr) {
    pool = NewPool(device);
    pool->is_default = true;
  }
  return pool;
}

CUmemoryPool CurrentPool(int device) {
  auto found = State().current.find(device);
  return found == State().current.end() ? DefaultPool(device) : found->second;
}

bool IsPool(CUmemoryPool pool) { return State().alive.count(pool) != 0; }

void DropIdle(CUmemoryPool pool, cuuint64_t keep) {
  while (!pool->idle.empty() && pool->reserved > keep) {
    Range* range = FindRange(pool->idle.back());
    pool->idle.pop_back();
    pool->reserved -= range->span_bytes;
    FreeRange(range, "trimmed from its pool");
  }
  if (pool->destroyed && pool->reserved == 0) {
    State().alive.erase(pool);
    delete pool;
  }
}

Range* TakeIdle(CUmemoryPool pool, size_t bytes) {
  const size_t charged = ChargedBytes(bytes);
  for (auto it = pool->idle.begin(); it != pool->idle.end(); ++it) {
    Range* range = FindRange(*it);
    if (range->span_bytes != charged) continue;
    pool->idle.erase(it);
    range->bytes = bytes;
    return range;
  }
  return nullptr;
}

Range* TakeFromPool(CUmemoryPool pool, size_t bytes, CUresult* result) {
  *result = CUDA_SUCCESS;
  Range* range = TakeIdle(pool, bytes);
  if (range == nullptr) {
    range = AllocateRange(Kind::kPool, pool->device, bytes, result);
    if (range == nullptr) return nullptr;
    pool->reserved += range->span_bytes;
    pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  }
  range->pool = pool;
  range->access = pool->access;
  range->live = false;
  range->free_queued = false;
  pool->used += range->bytes;
  pool->used_high = std::max(pool->used_high, pool->used);
  return range;
}

CUresult CaptureAllocation(CUdeviceptr* address, size_t bytes, int device, CUstream stream) {
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUDA_MEM_ALLOC_NODE_PARAMS given{};
  given.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  given.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  given.bytesize = bytes;
  NodeParams params;
  if (CUresult bad = DescribeAllocation(&given, &params); bad != CUDA_SUCCESS) return bad;
  *address = given.dptr;
  return CaptureNode(stream, std::move(params));
}

CUresult CaptureFree(CUdeviceptr address, CUstream stream) {
  if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  NodeParams params;
  const CUresult bad = DescribeFree(stream->capture->graph, address, &params);
  return bad != CUDA_SUCCESS ? bad : CaptureNode(stream, std::move(params));
}

CUresult AllocateInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream handle) {
  CUstream stream = nullptr;
  if (CUresult bad = Streams::Get().Resolve(handle, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture != nullptr) return CaptureAllocation(address, bytes, pool->device, stream);
  CUresult result = CUDA_SUCCESS;
  Range* range = TakeFromPool(pool, bytes, &result);
  if (range == nullptr) return result;
  const CUdeviceptr base = range->base;
  Operation op;
  op.name = "cuMemAllocAsync";
  op.run = [base](Operation&) {
    if (Range* born = FindRange(base)) born->live = true;
    return CUDA_SUCCESS;
  };
  result = Submit(handle, std::move(op));
  if (result != CUDA_SUCCESS) {
    ReturnToPool(range);
    return result;
  }
  *address = base;
  return CUDA_SUCCESS;
}

cuuint64_t* CounterOf(CUmemoryPool pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool->release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool->reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool->reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool->used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool->used_high;
    default:
      return nullptr;
  }
}

int* ReuseOf(CUmemoryPool pool, CUmemPool_attribute attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
      return &pool->reuse[0];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
      return &pool->reuse[1];
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return &pool->reuse[2];
    default:
      return nullptr;
  }
}

}  // namespace

void ReturnToPool(Range* range) {
  if (range->of_graph) {
    EndGraphMemory(range);
    return;
  }
  CUmemoryPool pool = range->pool;
  ForgetRange(range->base, range->span_bytes);
  range->live = false;
  pool->used -= range->bytes;
  pool->idle.push_back(range->base);
  if (pool->destroyed) DropIdle(pool, 0);
}

void TrimPoolsToThreshold() {
  const std::set<CUmemoryPool> alive = State().alive;
  for (CUmemoryPool pool : alive) DropIdle(pool, pool->release_threshold);
}

bool TrimPools(int device) {
  bool any = false;
  const std::set<CUmemoryPool> alive = State().alive;
  for (CUmemoryPool pool : alive) {
    if (pool->device != device || pool->idle.empty()) continue;
    DropIdle(pool, 0);
    any = true;
  }
  return any;
}

}  // namespace simgpu

using namespace simgpu;

SIMGPU_API CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize,
                                                    CUmemoryPool pool, CUstream hStream) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  Guard hold(DriverLock());
  if (dptr == nullptr || bytesize == 0 || !IsPool(pool) || pool->destroyed)
    return CUDA_ERROR_INVALID_VALUE;
  return AllocateInOrder(dptr, bytesize, pool, hStream);
}

SIMGPU_API CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  Guard hold(DriverLock());
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  return AllocateInOrder(dptr, bytesize, CurrentPool(context->device), hStream);
}

SIMGPU_API CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  Guard hold(DriverLock());
  CUstream stream = nullptr;
  if (CUresult bad = Streams::Get().Resolve(hStream, &stream); bad != CUDA_SUCCESS) return bad;
  if (stream->capture != nullptr) return CaptureFree(dptr, stream);
  Range* range = FindRange(dptr);
  const bool ours = range != nullptr && range->base == dptr && range->kind == Kind::kPool;
  if (!ours || range->free_queued) return CUDA_ERROR_INVALID_VALUE;
  Operation op;
  op.name = "cuMemFreeAsync";
  op.run = [dptr](Operation&) -> CUresult {
    Range* dying = FindRange(dptr);
    if (dying == nullptr || !dying->live) return CUDA_ERROR_INVALID_VALUE;
    ReturnToPool(dying);
    return CUDA_SUCCESS;
  };
  range->free_queued = true;
  const CUresult result = Submit(hStream, std::move(op));
  // In eager order the range may be gone already.
  if (result != CUDA_SUCCESS && (range = FindRange(dptr)) != nullptr) range->free_queued = false;
  return result;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (pool == nullptr || props == nullptr || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (!IsDevice(props->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = NewPool(props->location.id);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolDestroy(CUmemoryPool pool) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsPool(pool) || pool->is_default || pool->destroyed) return CUDA_ERROR_INVALID_VALUE;
  if (State().current.count(pool->device) && State().current[pool->device] == pool) {
    State().current.erase(pool->device);
  }
  pool->destroyed = true;
  DropIdle(pool, 0);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsPool(pool)) return CUDA_ERROR_INVALID_VALUE;
  DropIdle(pool, minBytesToKeep);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                                  void* value) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsPool(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const int* reuse = ReuseOf(pool, attr)) {
    *static_cast<int*>(value) = *reuse;
    return CUDA_SUCCESS;
  }
  const cuuint64_t* counter = CounterOf(pool, attr);
  if (counter == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<cuuint64_t*>(value) = *counter;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                                  void* value) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsPool(pool) || value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (int* reuse = ReuseOf(pool, attr)) {
    *reuse = *static_cast<int*>(value) != 0;
    return CUDA_SUCCESS;
  }
  const auto wanted = *static_cast<cuuint64_t*>(value);
  if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->release_threshold = wanted;
    return CUDA_SUCCESS;
  }
  const bool high =
      attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH || attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH;
  if (!high || wanted != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attr == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->reserved_high = pool->reserved;
  if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->used_high = pool->used;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* map,
                                               size_t count) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsPool(pool) || (map == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !IsDevice(map[i].location.id)) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
      pool->access.erase(map[i].location.id);
    } else {
      pool->access[map[i].location.id] = map[i].flags;
    }
  }
  ForEachRange([pool](Range& range) {
    if (range.pool == pool) range.access = pool->access;
  });
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                               CUmemLocation* location) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (flags == nullptr || !IsPool(pool) || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const bool own = location->type == CU_MEM_LOCATION_TYPE_DEVICE && location->id == pool->device;
  auto found = pool->access.find(location->id);
  *flags = own                           ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
           : found == pool->access.end() ? CU_MEM_ACCESS_FLAGS_PROT_NONE
                                         : found->second;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice dev) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = DefaultPool(dev);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice dev) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = CurrentPool(dev);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  SIMGPU_ENTER();
  Guard hold(DriverLock());
  if (!IsDevice(dev)) return CUDA_ERROR_INVALID_DEVICE;
  if (!IsPool(pool) || pool->device != dev) return CUDA_ERROR_INVALID_VALUE;
  State().current[dev] = pool;
  return CUDA_SUCCESS;
}
