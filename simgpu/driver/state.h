// What all parts of the simulated driver share: the driver lock, configuration, devices, contexts
// and the entry macros. Everything of a context that belongs to one part (streams, modules, pools)
// is kept by that part, keyed by the context's address.

#ifndef SIMGPU_DRIVER_STATE_H_
#define SIMGPU_DRIVER_STATE_H_

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <string>

#include "simgpu/driver/config.h"

// Opaque to callers; CUcontext points to one of these.
struct CUctx_st {
  uint32_t magic = 0;
  int device = 0;
  bool primary = false;
  unsigned flags = 0;
  int primary_refs = 0;
  CUresult sticky = CUDA_SUCCESS;  // set by a fault on the device; answered by every later call
};

namespace simgpu {

// One recursive lock for all state: the simulator favours truth over parallel speed.
std::recursive_mutex& DriverLock();

bool Initialized();          // cuInit succeeded in this process (and not only in its parent)
bool IsDevice(int device);   // ordinal of a configured device
CUcontext CurrentContext();  // of the calling thread, or null
// The current context if it is usable: CUDA_ERROR_NOT_INITIALIZED, INVALID_CONTEXT, or its sticky
// error.
CUresult RequireContext(CUcontext* context);
bool IsContext(CUcontext context);  // alive
// True if work of `device` may touch plain memory of `owner`: cuCtxEnablePeerAccess said so.
bool PeerAccessEnabled(int device, int owner);
// Ends the context and everything it owns; a primary context can be retained again.
void EndContext(CUcontext context);
// Keeps the error for every later call that needs `context` and logs the sentence.
void MakeSticky(CUcontext context, CUresult error, const std::string& sentence);

// Fault injection and verbose trace: called first by every entry point. Returns CUDA_SUCCESS, or
// the code that SIMGPU's `fail` key asks this call of `function` to return.
CUresult Enter(const char* function);

// Logs to stderr as "simgpu: sentence", under verbose or always.
void LogAlways(const char* format, ...) __attribute__((format(printf, 1, 2)));
void LogVerbose(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simgpu

#define SIMGPU_API extern "C" __attribute__((visibility("default")))
// First line of every entry point: CUDA_ERROR_NOT_INITIALIZED before cuInit, or an injected fault.
#define SIMGPU_ENTER()                                                                            \
  do {                                                                                            \
    if (CUresult injected = ::simgpu::Enter(__func__); injected != CUDA_SUCCESS) return injected; \
  } while (0)

#endif  // SIMGPU_DRIVER_STATE_H_
