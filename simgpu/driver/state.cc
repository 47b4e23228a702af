// Process-wide state of the simulated driver: its lock, cuInit and the fork rule, fault injection
// and the log. Contexts are in context.cc. Thread rule: everything here may be called from any
// thread; the lock is recursive.

#include "simgpu/driver/state.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>

#include "simgpu/driver/node.h"

namespace simgpu {
namespace {

enum class Phase { kNew, kReady, kForked };
std::atomic<Phase> g_phase{Phase::kNew};
// A child of fork must not wait for a lock that a thread of its parent held.
alignas(std::recursive_mutex) unsigned char g_lock_storage[sizeof(std::recursive_mutex)];

void BeforeFork() { DriverLock().lock(); }
void AfterForkInParent() { DriverLock().unlock(); }
void AfterForkInChild() {
  new (g_lock_storage) std::recursive_mutex;
  g_phase = Phase::kForked;
}

// "cuMemAlloc_v2" -> "cuMemAlloc"; "cuMemcpyHtoDAsync_v2_ptsz" -> "cuMemcpyHtoDAsync".
std::string BaseName(const char* function) {
  std::string name = function;
  for (const char* suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    size_t length = std::strlen(suffix);
    if (name.size() > length && name.compare(name.size() - length, length, suffix) == 0) {
      name.resize(name.size() - length);
    }
  }
  return name;
}

bool AllowedBeforeInit(const char* function) {
  static constexpr const char* kNames[] = {
      "cuInit",           "cuDriverGetVersion",  "cuGetErrorString", "cuGetErrorName",
      "cuGetProcAddress", "cuGetProcAddress_v2", "cuGetExportTable"};
  for (const char* name : kNames) {
    if (std::strcmp(name, function) == 0) return true;
  }
  return false;
}

CUresult InjectedFault(const char* function) {
  const Config& config = GetConfig();
  if (config.faults.empty()) return CUDA_SUCCESS;
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  static auto* calls = new std::map<std::string, uint64_t>;
  std::string name = BaseName(function);
  uint64_t call = ++(*calls)[name];
  for (const Fault& fault : config.faults) {
    if (BaseName(fault.function.c_str()) != name || fault.nth != call) continue;
    LogVerbose("call %llu of %s fails with %d, as the key fail asks",
               static_cast<unsigned long long>(call), name.c_str(), fault.code);
    return fault.code;
  }
  return CUDA_SUCCESS;
}

void Log(const char* format, va_list arguments) {
  char line[2048];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::fprintf(stderr, "simgpu: %s\n", line);
}

}  // namespace

std::recursive_mutex& DriverLock() {
  static std::recursive_mutex* lock = new (g_lock_storage) std::recursive_mutex;
  return *lock;
}

bool Initialized() { return g_phase == Phase::kReady; }

CUresult Enter(const char* function) {
  if (g_phase != Phase::kReady) {
    if (g_phase == Phase::kForked && std::strcmp(function, "cuInit") == 0) {
      return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (!AllowedBeforeInit(function)) return CUDA_ERROR_NOT_INITIALIZED;
  }
  return InjectedFault(function);
}

void LogAlways(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  Log(format, arguments);
  va_end(arguments);
}

void LogVerbose(const char* format, ...) {
  if (!GetConfig().verbose) return;
  va_list arguments;
  va_start(arguments, format);
  Log(format, arguments);
  va_end(arguments);
}

SIMGPU_API CUresult CUDAAPI cuInit(unsigned int flags) {
  SIMGPU_ENTER();
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  if (g_phase == Phase::kReady) return CUDA_SUCCESS;
  if (!ConfigError().empty()) {
    LogAlways("%s", ConfigError().c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (GetConfig().devices == 0) return CUDA_ERROR_NO_DEVICE;
  if (CUresult joined = JoinNode(); joined != CUDA_SUCCESS) return joined;
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
  g_phase = Phase::kReady;
  return CUDA_SUCCESS;
}

// The stubs of what is not implemented end here (cmake/tables).
extern "C" int simgpu_missing(const char* name) {
  std::lock_guard<std::recursive_mutex> hold(DriverLock());
  static auto* named = new std::set<std::string>;
  if (named->insert(name).second) LogVerbose("%s is not supported", name);
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace simgpu
