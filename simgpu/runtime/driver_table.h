// The driver as the runtime sees it: a table of functions that were all asked for by name through
// cuGetProcAddress of whatever library answers to the soname libcuda.so.1, as NVIDIA's runtime
// does. Nothing here links to a driver, and nothing is opened before the first API call that needs
// one.
//
// Threads: Ready may be called from any thread; a table never changes once it was handed out.

#ifndef SIMGPU_RUNTIME_DRIVER_TABLE_H_
#define SIMGPU_RUNTIME_DRIVER_TABLE_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace simgpu::runtime {

struct Driver {
#define SIMGPU_DRIVER_FUNCTION(name) decltype(&::name) name;
#define SIMGPU_DRIVER_FUNCTION_OF(name, version) decltype(&::name) name;
#include "simgpu/runtime/driver_functions.def"
};

// What stream 0 means to the caller: one stream for all threads (plain names), or one for each
// thread (names that end in _ptds or _ptsz).
enum class DefaultStream { kLegacy, kPerThread };

// The table for `stream`, after a successful cuInit; null with the reason in `*error` otherwise. A
// failed cuInit is tried again by the next call.
const Driver* Ready(DefaultStream stream, cudaError_t* error);

// The same without cuInit, for queries that work before it.
const Driver* Opened(DefaultStream stream, cudaError_t* error);

// cuGetProcAddress itself, for cudaGetDriverEntryPoint; null when no driver could be opened.
decltype(&::cuGetProcAddress) ProcAddressLookup();

// True from the moment the process began to exit: the driver may be torn down already.
bool Exiting();

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_DRIVER_TABLE_H_
