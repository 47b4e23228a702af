// Names and sentences of errors, and the answer of functions that are not implemented. Threads:
// any.

#include <cuda_runtime_api.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

struct Sentence {
  cudaError_t error;
  const char* text;
};

// Those whose sentence is not just their name in lower case.
constexpr Sentence kSentences[] = {
    {cudaSuccess, "no error"},
    {cudaErrorInvalidValue, "invalid argument"},
    {cudaErrorMemoryAllocation, "out of memory"},
    {cudaErrorInitializationError, "initialization error"},
    {cudaErrorCudartUnloading, "driver shutting down"},
    {cudaErrorInvalidConfiguration, "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorMissingConfiguration, "__global__ function call is not configured"},
    {cudaErrorInvalidDeviceFunction, "invalid device function"},
    {cudaErrorNoDevice, "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "device kernel image is invalid"},
    {cudaErrorDeviceUninitialized, "invalid device context"},
    {cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"},
    {cudaErrorInvalidPtx, "a PTX JIT compilation failed"},
    {cudaErrorInvalidResourceHandle, "invalid resource handle"},
    {cudaErrorIllegalState, "the operation cannot be performed in the present state"},
    {cudaErrorSymbolNotFound, "named symbol not found"},
    {cudaErrorNotReady, "device not ready"},
    {cudaErrorIllegalAddress, "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "the launch timed out and was terminated"},
    {cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"},
    {cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"},
    {cudaErrorSetOnActiveProcess, "cannot set while device is active in this process"},
    {cudaErrorContextIsDestroyed, "context is destroyed"},
    {cudaErrorAssert, "device-side assert triggered"},
    {cudaErrorTooManyPeers, "peer mapping resources exhausted"},
    {cudaErrorHostMemoryAlreadyRegistered,
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "unspecified launch failure"},
    {cudaErrorNotPermitted, "operation not permitted"},
    {cudaErrorNotSupported, "operation not supported"},
    {cudaErrorSystemNotReady, "system not yet initialized"},
    {cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureMerge,
     "operation would result in a merge of separate capture sequences"},
    {cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit,
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent,
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread,
     "attempt to terminate a thread-local capture sequence from another thread"},
    {cudaErrorUnknown, "unknown error"},
};

// "cudaErrorDeviceAlreadyInUse" -> "device already in use".
std::string SentenceFromName(const char* name) {
  constexpr std::string_view kPrefix = "cudaError";
  std::string sentence;
  for (const char* at = name + kPrefix.size(); *at != '\0'; ++at) {
    if (isupper(*at) && !sentence.empty()) sentence += ' ';
    sentence += static_cast<char>(tolower(*at));
  }
  return sentence;
}

// Built at the first question, kept for ever: callers hold the pointers.
const std::map<cudaError_t, std::string>& Sentences() {
  static const auto* sentences = [] {
    auto* all = new std::map<cudaError_t, std::string>;
    for (const Sentence& sentence : kSentences) (*all)[sentence.error] = sentence.text;
#define SIMGPU_RUNTIME_ERROR(name) all->try_emplace(name, SentenceFromName(#name));
#include "error_names.inc"
#undef SIMGPU_RUNTIME_ERROR
    return all;
  }();
  return *sentences;
}

}  // namespace

// The driver reads SIMGPU in full; here only one key matters.
bool IsVerbose() {
  const char* text = getenv("SIMGPU");
  if (text == nullptr) return false;
  return (std::string(",") + text + ",").find(",verbose=1,") != std::string::npos;
}

SIMGPU_RUNTIME_API const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define SIMGPU_RUNTIME_ERROR(name) \
  case name:                       \
    return #name;
#include "error_names.inc"
#undef SIMGPU_RUNTIME_ERROR
  }
  return "unrecognized error code";
}

SIMGPU_RUNTIME_API const char* cudaGetErrorString(cudaError_t error) {
  const auto found = Sentences().find(error);
  return found == Sentences().end() ? "unrecognized error code" : found->second.c_str();
}

// Called by the generated stubs; `said` is the stub's own mark that it was named before.
extern "C" __attribute__((visibility("hidden"))) int simgpu_runtime_stub(const char* name,
                                                                         char* said) {
  if (!__atomic_test_and_set(said, __ATOMIC_RELAXED) && IsVerbose()) {
    fprintf(stderr, "simgpu: %s is not implemented and returns cudaErrorNotSupported\n", name);
  }
  return Record(cudaErrorNotSupported);
}

}  // namespace simgpu::runtime
