// Versions, driver entry points, profiler switches, channel descriptions. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

cudaDriverEntryPointQueryResult AsRuntime(CUdriverProcAddressQueryResult status) {
  switch (status) {
    case CU_GET_PROC_ADDRESS_SUCCESS:
      return cudaDriverEntryPointSuccess;
    case CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT:
      return cudaDriverEntryPointVersionNotSufficent;
    default:
      return cudaDriverEntryPointSymbolNotFound;
  }
}

// Which entry point a caller gets who asks for the default.
cuuint64_t FlagsFor(DefaultStream stream, unsigned long long flags) {
  if (flags != cudaEnableDefault) return flags;
  return stream == DefaultStream::kLegacy ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                          : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
}

struct Query {
  const char* symbol;
  void** function;
  unsigned version;
  unsigned long long flags;
  cudaDriverEntryPointQueryResult* status;
};

int EntryPoint(DefaultStream stream, const Query& query) {
  if (query.symbol == nullptr || query.function == nullptr) return cudaErrorInvalidValue;
  const auto lookup = ProcAddressLookup();
  if (lookup == nullptr) return cudaErrorInsufficientDriver;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *query.function = nullptr;
  const CUresult code = lookup(query.symbol, query.function, static_cast<int>(query.version),
                               FlagsFor(stream, query.flags), &status);
  if (query.status != nullptr) *query.status = AsRuntime(status);
  // A caller who asked for the status learns from it what is missing; others get an error.
  const bool missing = code == CUDA_ERROR_NOT_FOUND || status != CU_GET_PROC_ADDRESS_SUCCESS;
  if (missing) return query.status != nullptr ? cudaSuccess : cudaErrorSymbolNotFound;
  return code;
}

int DriverVersion(int* version) {
  if (version == nullptr) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  const Driver* driver = Opened(DefaultStream::kLegacy, &error);
  *version = 0;  // documented: zero when there is no driver
  return driver == nullptr ? int{cudaSuccess} : int{driver->cuDriverGetVersion(version)};
}

}  // namespace

SIMGPU_RUNTIME_API cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return Record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

SIMGPU_RUNTIME_API cudaError_t cudaDriverGetVersion(int* version) {
  return Record(DriverVersion(version));
}

SIMGPU_RUNTIME_API cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                                       unsigned long long flags,
                                                       cudaDriverEntryPointQueryResult* status) {
  return Record(
      EntryPoint(DefaultStream::kLegacy, {symbol, function, CUDART_VERSION, flags, status}));
}

SIMGPU_RUNTIME_API cudaError_t
cudaGetDriverEntryPoint_ptsz(const char* symbol, void** function, unsigned long long flags,
                             cudaDriverEntryPointQueryResult* status) {
  return Record(
      EntryPoint(DefaultStream::kPerThread, {symbol, function, CUDART_VERSION, flags, status}));
}

SIMGPU_RUNTIME_API cudaError_t cudaGetDriverEntryPointByVersion(
    const char* symbol, void** function, unsigned version, unsigned long long flags,
    cudaDriverEntryPointQueryResult* status) {
  return Record(EntryPoint(DefaultStream::kLegacy, {symbol, function, version, flags, status}));
}

SIMGPU_RUNTIME_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz(
    const char* symbol, void** function, unsigned version, unsigned long long flags,
    cudaDriverEntryPointQueryResult* status) {
  return Record(EntryPoint(DefaultStream::kPerThread, {symbol, function, version, flags, status}));
}

// There is no profiler to switch; programs that mark their interesting part must not fail for it.
SIMGPU_RUNTIME_API cudaError_t cudaProfilerStart() { return cudaSuccess; }
SIMGPU_RUNTIME_API cudaError_t cudaProfilerStop() { return cudaSuccess; }

SIMGPU_RUNTIME_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                               cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

}  // namespace simgpu::runtime
