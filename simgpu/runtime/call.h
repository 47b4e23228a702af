// How an exported function reaches the driver: with cuInit done, a context current on the thread,
// and its result kept as the thread's last error. The macros make one line of each function whose
// driver counterpart takes the same arguments.
//
// Threads: everything here is per thread, except the primary contexts, which are shared and locked.

#ifndef SIMGPU_RUNTIME_CALL_H_
#define SIMGPU_RUNTIME_CALL_H_

#include <cstdint>

#include "simgpu/runtime/driver_table.h"

namespace simgpu::runtime {

// Keeps `code` (a cudaError_t or a CUresult, which share their numbers) as the thread's last error
// unless it is success; returns it.
cudaError_t Record(int code);

// SIMGPU asks for verbose=1.
bool IsVerbose();

// The thread's device: that of its current context, else the one cudaSetDevice chose, else 0.
int ThreadDevice(const Driver& driver);

// Makes the primary context of `device` current on this thread, retaining it if this process does
// not hold it yet. Returns a driver code.
CUresult UseDevice(const Driver& driver, int device);

// The primary context of `device`, retained for the life of the process; not made current.
CUresult RetainPrimary(const Driver& driver, int device, CUcontext* context);

// Gives up and resets the primary context of `device`.
CUresult ResetPrimary(const Driver& driver, int device);

// True when this thread had a context that the runtime saw; cleared by a reset of its device.
bool ThreadIsBound();

// Gives the thread a context when it has none, or when the one it has is a primary context that was
// reset. `*changed` tells whether a failed call is worth repeating.
CUresult BindThread(const Driver& driver, bool* changed);

inline bool MayLackContext(int code) {
  return code == CUDA_ERROR_INVALID_CONTEXT || code == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

// Runs `body(driver)` with the driver initialised; no context is needed or made.
template <typename Body>
cudaError_t WithDriver(DefaultStream stream, Body body) {
  cudaError_t error = cudaSuccess;
  const Driver* driver = Ready(stream, &error);
  return Record(driver == nullptr ? int{error} : int{body(*driver)});
}

// Runs `body(driver)` with a context current. A thread that had one is trusted to have it still:
// the job may have dropped it through the driver API, so a complaint about it is answered by
// binding again, once.
template <typename Body>
int RunWithContext(DefaultStream stream, Body body) {
  cudaError_t error = cudaSuccess;
  const Driver* driver = Ready(stream, &error);
  if (driver == nullptr) return error;
  bool changed = false;
  if (!ThreadIsBound()) {
    if (const CUresult bound = BindThread(*driver, &changed); bound != CUDA_SUCCESS) return bound;
  }
  const int code = body(*driver);
  if (__builtin_expect(!MayLackContext(code), 1)) return code;
  const CUresult bound = BindThread(*driver, &changed);
  if (bound != CUDA_SUCCESS || !changed) return code;
  return body(*driver);
}

template <typename Body>
cudaError_t WithContext(DefaultStream stream, Body body) {
  return Record(RunWithContext(stream, body));
}

inline CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }
inline CUdeviceptr* AddressOf(void** pointer) { return reinterpret_cast<CUdeviceptr*>(pointer); }

}  // namespace simgpu::runtime

#define SIMGPU_RUNTIME_API extern "C" __attribute__((visibility("default")))

// SIMGPU_QUERY(name, (parameters), code): `code` is an expression that uses `d`, the driver's
// table.
#define SIMGPU_QUERY(name, parameters, ...)                                                \
  SIMGPU_RUNTIME_API cudaError_t name parameters {                                         \
    return ::simgpu::runtime::WithDriver(                                                  \
        ::simgpu::runtime::DefaultStream::kLegacy,                                         \
        [&]([[maybe_unused]] const ::simgpu::runtime::Driver& d) { return __VA_ARGS__; }); \
  }

#define SIMGPU_CALL_ON(table, name, parameters, ...)                                       \
  SIMGPU_RUNTIME_API cudaError_t name parameters {                                         \
    return ::simgpu::runtime::WithContext(                                                 \
        ::simgpu::runtime::DefaultStream::table,                                           \
        [&]([[maybe_unused]] const ::simgpu::runtime::Driver& d) { return __VA_ARGS__; }); \
  }

// The same with a context current.
#define SIMGPU_CALL(name, parameters, ...) SIMGPU_CALL_ON(kLegacy, name, parameters, __VA_ARGS__)

// The same, and once more under the name with `suffix`, where stream 0 is the thread's own.
#define SIMGPU_CALL_TWINS(name, suffix, parameters, ...) \
  SIMGPU_CALL_ON(kLegacy, name, parameters, __VA_ARGS__) \
  SIMGPU_CALL_ON(kPerThread, name##suffix, parameters, __VA_ARGS__)

#endif  // SIMGPU_RUNTIME_CALL_H_
