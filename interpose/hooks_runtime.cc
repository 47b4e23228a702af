// The runtime seam: the short path for what jobs with a shared libcudart call most. Whatever is not
// plainly the arena's goes to the real runtime, which keeps its own error state and reaches the
// driver seam, so nothing escapes; the guard is open again by then, and an outcome that the arena
// already gave travels along, so nothing is counted twice.

#include <atomic>

#include "interpose/hook_gate.h"
#include "interpose/options.h"
#include "interpose/outcome.h"
#include "interpose/resolve.h"
#include "interpose/runtime_chain.h"

namespace tidemark::interpose {

// The runtime's types as far as its ABI goes: its headers are of one CUDA version, these exports
// serve every libcudart.so.N.
using RuntimeError = unsigned;  // cudaError_t
using RuntimeStream = CUstream;
constexpr RuntimeError kRuntimeSuccess = 0;
constexpr RuntimeError kRuntimeNotSupported = 801;

// Declares the export `name`; its C++ name is Hook_name.
#define TIDEMARK_RUNTIME(name, parameters)          \
  extern "C" __attribute__((visibility("default"))) \
  RuntimeError Hook_##name parameters __asm__(#name)

TIDEMARK_RUNTIME(cudaMalloc, (void** address, size_t bytes));
TIDEMARK_RUNTIME(cudaFree, (void* address));
TIDEMARK_RUNTIME(cudaMallocAsync, (void** address, size_t bytes, RuntimeStream stream));
TIDEMARK_RUNTIME(cudaMallocAsync_ptsz, (void** address, size_t bytes, RuntimeStream stream));
TIDEMARK_RUNTIME(cudaFreeAsync, (void* address, RuntimeStream stream));
TIDEMARK_RUNTIME(cudaFreeAsync_ptsz, (void* address, RuntimeStream stream));
TIDEMARK_RUNTIME(cudaMemGetInfo, (size_t * free_bytes, size_t* total_bytes));

using Status = int*;  // cudaDriverEntryPointQueryResult
TIDEMARK_RUNTIME(cudaGetDriverEntryPoint,
                 (const char* symbol, void** function, unsigned long long flags, Status status));
TIDEMARK_RUNTIME(cudaGetDriverEntryPoint_ptsz,
                 (const char* symbol, void** function, unsigned long long flags, Status status));
TIDEMARK_RUNTIME(cudaGetDriverEntryPointByVersion,
                 (const char* symbol, void** function, unsigned version, unsigned long long flags,
                  Status status));
TIDEMARK_RUNTIME(cudaGetDriverEntryPointByVersion_ptsz,
                 (const char* symbol, void** function, unsigned version, unsigned long long flags,
                  Status status));

namespace {

// Calls the real `hook`; only a program without any libcudart (it found our export by name) gets
// the error.
template <typename... Parameters, typename... Arguments>
RuntimeError CallNext(const char* name, RuntimeError (*hook)(Parameters...), const void* site,
                      Arguments... arguments) {
  void* next = NextRuntimeFunction(name, reinterpret_cast<void*>(hook), site);
  if (next == nullptr) return kRuntimeNotSupported;
  return reinterpret_cast<decltype(hook)>(next)(arguments...);
}
#define TIDEMARK_NEXT(name, ...) \
  CallNext(#name, &Hook_##name, __builtin_return_address(0), __VA_ARGS__)

// Before 12.0 the runtime's current device may differ from the current context until it is used.
bool RuntimeFollowsContext(const void* site) {
  static std::atomic<int> answer{-1};
  int known = answer.load(std::memory_order_relaxed);
  if (known >= 0) return known != 0;
  using GetVersion = RuntimeError (*)(int*);
  auto get =
      reinterpret_cast<GetVersion>(NextRuntimeFunction("cudaRuntimeGetVersion", nullptr, site));
  int version = 0;
  bool follows = get != nullptr && get(&version) == kRuntimeSuccess && version >= 12000;
  answer.store(follows, std::memory_order_relaxed);
  return follows;
}

bool HasContext() {
  const char* why = nullptr;
  const kernels::Driver* driver = RealDriver(&why);
  CUcontext context = nullptr;
  return driver != nullptr && driver->cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
         context != nullptr;
}

// Whether the short path is open to this call.
bool MayServe(const Guard& guard, const void* site) {
  return Manages(guard) && RuntimeFollowsContext(site) && HasContext();
}

CUdeviceptr Device(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

// The arena's answer to an allocation: CUDA_SUCCESS with `*address` set, an error that the driver
// seam has to repeat, or CUDA_ERROR_NOT_FOUND when the arena does not serve it.
constexpr CUresult kNotServed = CUDA_ERROR_NOT_FOUND;

template <typename Allocate>
CUresult Serve(const void* site, void** address, size_t bytes, const Allocate& allocate) {
  Guard guard;
  if (address == nullptr || bytes == 0 || !MayServe(guard, site)) return kNotServed;
  CUdeviceptr served = 0;
  CUresult result = kNotServed;
  if (!allocate(guard, &served, &result)) return kNotServed;
  if (result == CUDA_SUCCESS) *address = reinterpret_cast<void*>(served);
  return result;
}

// Whether the arena took the address back.
template <typename Release>
bool Released(const void* site, void* address, const Release& release) {
  Guard guard;
  if (address == nullptr || !MayServe(guard, site)) return false;
  CUresult result = CUDA_SUCCESS;
  return release(guard, &result) && result == CUDA_SUCCESS;
}

CUresult ServeAsync(const void* site, void** address, size_t bytes, CUstream stream) {
  return Serve(site, address, bytes,
               [&](const Guard& guard, CUdeviceptr* served, CUresult* result) {
                 return ManagerAllocAsync(guard, served, bytes, stream, result);
               });
}

bool ReleasedAsync(const void* site, void* address, CUstream stream) {
  return Released(site, address, [&](const Guard& guard, CUresult* result) {
    return ManagerFreeAsync(guard, Device(address), stream, result);
  });
}

// A runtime that found its driver before we were asked, or keeps pointers of its own.
RuntimeError Replace(RuntimeError result, const char* symbol, void** function) {
  bool found = result == kRuntimeSuccess && symbol != nullptr && function != nullptr && *function;
  if (found && !GetOptions().disable) *function = Substitute(*function, symbol);
  return result;
}

}  // namespace

RuntimeError Hook_cudaMalloc(void** address, size_t bytes) {
  auto allocate = [&](const Guard& guard, CUdeviceptr* served, CUresult* result) {
    return ManagerAlloc(guard, served, bytes, result);
  };
  CUresult served = Serve(__builtin_return_address(0), address, bytes, allocate);
  if (served == CUDA_SUCCESS) return kRuntimeSuccess;
  if (served == kNotServed) return TIDEMARK_NEXT(cudaMalloc, address, bytes);
  KnownOutcome known(served);
  return TIDEMARK_NEXT(cudaMalloc, address, bytes);
}

RuntimeError Hook_cudaFree(void* address) {
  auto release = [&](const Guard& guard, CUresult* result) {
    return ManagerFree(guard, Device(address), result);
  };
  if (Released(__builtin_return_address(0), address, release)) return kRuntimeSuccess;
  return TIDEMARK_NEXT(cudaFree, address);
}

#define TIDEMARK_MALLOC_ASYNC(name, on_stream)                                            \
  RuntimeError Hook_##name(void** address, size_t bytes, RuntimeStream stream) {          \
    CUresult served = ServeAsync(__builtin_return_address(0), address, bytes, on_stream); \
    if (served == CUDA_SUCCESS) return kRuntimeSuccess;                                   \
    if (served == kNotServed) return TIDEMARK_NEXT(name, address, bytes, stream);         \
    KnownOutcome known(served);                                                           \
    return TIDEMARK_NEXT(name, address, bytes, stream);                                   \
  }
TIDEMARK_MALLOC_ASYNC(cudaMallocAsync, stream)
TIDEMARK_MALLOC_ASYNC(cudaMallocAsync_ptsz, PerThread(stream))

#define TIDEMARK_FREE_ASYNC(name, on_stream)                                                    \
  RuntimeError Hook_##name(void* address, RuntimeStream stream) {                               \
    if (ReleasedAsync(__builtin_return_address(0), address, on_stream)) return kRuntimeSuccess; \
    return TIDEMARK_NEXT(name, address, stream);                                                \
  }
TIDEMARK_FREE_ASYNC(cudaFreeAsync, stream)
TIDEMARK_FREE_ASYNC(cudaFreeAsync_ptsz, PerThread(stream))

RuntimeError Hook_cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  {
    Guard guard;
    CUresult result = CUDA_SUCCESS;
    bool answerable = free_bytes != nullptr && total_bytes != nullptr;
    if (answerable && MayServe(guard, __builtin_return_address(0)) &&
        ManagerMemGetInfo(guard, free_bytes, total_bytes, &result) && result == CUDA_SUCCESS) {
      return kRuntimeSuccess;
    }
  }
  return TIDEMARK_NEXT(cudaMemGetInfo, free_bytes, total_bytes);
}

#define TIDEMARK_ENTRY_POINT(name)                                                          \
  RuntimeError Hook_##name(const char* symbol, void** function, unsigned long long flags,   \
                           Status status) {                                                 \
    return Replace(TIDEMARK_NEXT(name, symbol, function, flags, status), symbol, function); \
  }
TIDEMARK_ENTRY_POINT(cudaGetDriverEntryPoint)
TIDEMARK_ENTRY_POINT(cudaGetDriverEntryPoint_ptsz)

#define TIDEMARK_ENTRY_POINT_BY_VERSION(name)                                             \
  RuntimeError Hook_##name(const char* symbol, void** function, unsigned version,         \
                           unsigned long long flags, Status status) {                     \
    return Replace(TIDEMARK_NEXT(name, symbol, function, version, flags, status), symbol, \
                   function);                                                             \
  }
TIDEMARK_ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion)
TIDEMARK_ENTRY_POINT_BY_VERSION(cudaGetDriverEntryPointByVersion_ptsz)

}  // namespace tidemark::interpose
