// Entry points of contexts: cuCtx*, cuDevicePrimaryCtx* and peer access.
// Thread rule: callable from any thread, as the driver API is.

#include <algorithm>

#include "simgpu/driver/context.h"
#include "simgpu/driver/engine.h"

namespace simgpu {
namespace {

using Hold = std::lock_guard<std::recursive_mutex>;

bool FlagsAreValid(unsigned flags) {
  unsigned schedule = flags & CU_CTX_SCHED_MASK;
  return (flags & ~static_cast<unsigned>(CU_CTX_FLAGS_MASK)) == 0 &&
         (schedule == 0 || (schedule & (schedule - 1)) == 0);
}

CUresult CreateContext(CUcontext* context, unsigned flags, CUdevice device) {
  if (context == nullptr || !FlagsAreValid(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = NewContext(device, flags);
  ContextStack().push_back(*context);
  return CUDA_SUCCESS;
}

size_t DefaultLimit(CUlimit limit) {
  switch (limit) {
    case CU_LIMIT_STACK_SIZE:
      return 1024;
    case CU_LIMIT_PRINTF_FIFO_SIZE:
      return size_t{7} << 20;
    case CU_LIMIT_MALLOC_HEAP_SIZE:
      return size_t{8} << 20;
    case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
      return 64;
    case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
      return 2;
    case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
      return 2048;
    default:
      return 0;
  }
}

bool LimitCanBeSet(CUlimit limit) {
  return limit >= 0 && limit <= CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
}

// The context itself must be alive; a sticky error does not matter to questions about settings.
CUresult CurrentSettings(ContextSettings** settings) {
  CUcontext context = CurrentContext();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *settings = SettingsOf(context);
  return *settings == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

template <typename Value>
CUresult GetSetting(Value ContextSettings::*setting, Value* value) {
  Hold hold(DriverLock());
  ContextSettings* settings = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult found = CurrentSettings(&settings); found != CUDA_SUCCESS) return found;
  *value = settings->*setting;
  return CUDA_SUCCESS;
}

template <typename Value>
CUresult SetSetting(Value ContextSettings::*setting, Value value) {
  Hold hold(DriverLock());
  ContextSettings* settings = nullptr;
  if (CUresult found = CurrentSettings(&settings); found != CUDA_SUCCESS) return found;
  settings->*setting = value;
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API CUresult CUDAAPI cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  SIMGPU_ENTER();
  return CreateContext(context, flags, device);
}

SIMGPU_API CUresult CUDAAPI cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* parameters,
                                           int count, unsigned flags, CUdevice device) {
  SIMGPU_ENTER();
  if (parameters != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return CreateContext(context, flags, device);
}

SIMGPU_API CUresult CUDAAPI cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* parameters,
                                           unsigned flags, CUdevice device) {
  SIMGPU_ENTER();
  if (parameters != nullptr && parameters->numExecAffinityParams != 0) {
    return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  }
  if (parameters != nullptr && parameters->cigParams != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return CreateContext(context, flags, device);
}

SIMGPU_API CUresult CUDAAPI cuCtxDestroy(CUcontext context) {
  SIMGPU_ENTER();
  if (!IsContext(context) || context->primary) return CUDA_ERROR_INVALID_CONTEXT;
  EndContext(context);
  std::vector<CUcontext>& stack = ContextStack();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  SIMGPU_ENTER();
  if (!IsContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
  ContextStack().push_back(context);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxPopCurrent(CUcontext* context) {
  SIMGPU_ENTER();
  std::vector<CUcontext>& stack = ContextStack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
  SIMGPU_ENTER();
  std::vector<CUcontext>& stack = ContextStack();
  if (context != nullptr && !IsContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(context);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetCurrent(CUcontext* context) {
  SIMGPU_ENTER();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = CurrentContext();
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) {
  SIMGPU_ENTER();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CurrentContext() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  *device = CurrentContext()->device;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  SIMGPU_ENTER();
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) context = CurrentContext();
  if (!IsContext(context)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetFlags(unsigned* flags) {
  SIMGPU_ENTER();
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(CurrentContext())) return CUDA_ERROR_INVALID_CONTEXT;
  *flags = CurrentContext()->flags;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxSetFlags(unsigned flags) {
  SIMGPU_ENTER();
  if (!FlagsAreValid(flags)) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(CurrentContext())) return CUDA_ERROR_INVALID_CONTEXT;
  CurrentContext()->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long* id) {
  SIMGPU_ENTER();
  Hold hold(DriverLock());
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ContextSettings* settings = SettingsOf(context == nullptr ? CurrentContext() : context);
  if (settings == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = settings->id;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  SIMGPU_ENTER();
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(context == nullptr ? CurrentContext() : context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *version = 3020;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxSetLimit(CUlimit limit, size_t value) {
  SIMGPU_ENTER();
  Hold hold(DriverLock());
  ContextSettings* settings = nullptr;
  if (CUresult found = CurrentSettings(&settings); found != CUDA_SUCCESS) return found;
  if (!LimitCanBeSet(limit)) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  settings->limits[limit] = value;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetLimit(size_t* value, CUlimit limit) {
  SIMGPU_ENTER();
  Hold hold(DriverLock());
  ContextSettings* settings = nullptr;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult found = CurrentSettings(&settings); found != CUDA_SUCCESS) return found;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  auto set = settings->limits.find(limit);
  *value = set == settings->limits.end() ? DefaultLimit(limit) : set->second;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache* config) {
  SIMGPU_ENTER();
  return GetSetting(&ContextSettings::cache, config);
}

SIMGPU_API CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache config) {
  SIMGPU_ENTER();
  return SetSetting(&ContextSettings::cache, config);
}

SIMGPU_API CUresult CUDAAPI cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  SIMGPU_ENTER();
  return GetSetting(&ContextSettings::shared, config);
}

SIMGPU_API CUresult CUDAAPI cuCtxSetSharedMemConfig(CUsharedconfig config) {
  SIMGPU_ENTER();
  return SetSetting(&ContextSettings::shared, config);
}

SIMGPU_API CUresult CUDAAPI cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  SIMGPU_ENTER();
  if (!IsContext(CurrentContext())) return CUDA_ERROR_INVALID_CONTEXT;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuCtxResetPersistingL2Cache() {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  return RequireContext(&context);
}

SIMGPU_API CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  SIMGPU_ENTER();
  Hold hold(DriverLock());
  CUcontext context = nullptr;
  if (CUresult usable = RequireContext(&context); usable != CUDA_SUCCESS) return usable;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!IsContext(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == context->device) return CUDA_ERROR_INVALID_DEVICE;
  return AddPeer(context, peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

SIMGPU_API CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext peer) {
  SIMGPU_ENTER();
  Hold hold(DriverLock());
  CUcontext context = nullptr;
  if (CUresult usable = RequireContext(&context); usable != CUDA_SUCCESS) return usable;
  if (!IsContext(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  return RemovePeer(context, peer) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  SIMGPU_ENTER();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = RetainPrimary(device);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  SIMGPU_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  CUcontext context = PrimaryContext(device);
  {
    Hold hold(DriverLock());
    if (context->primary_refs == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--context->primary_refs > 0) return CUDA_SUCCESS;
  }
  EndContext(context);
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) {
  SIMGPU_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  EndContext(PrimaryContext(device));
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  SIMGPU_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!FlagsAreValid(flags)) return CUDA_ERROR_INVALID_VALUE;
  PrimaryContext(device)->flags = flags;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags,
                                                       int* active) {
  SIMGPU_ENTER();
  if (!IsDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = PrimaryContext(device)->flags;
  *active = IsContext(PrimaryContext(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

}  // namespace simgpu
