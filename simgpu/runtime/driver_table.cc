// Opens libcuda.so.1 and fills the tables. A function the driver does not know becomes one that
// answers CUDA_ERROR_NOT_SUPPORTED. Threads: see the header.

#include "simgpu/runtime/driver_table.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "simgpu/runtime/call.h"

namespace simgpu::runtime {
namespace {

using Lookup = decltype(&::cuGetProcAddress);

CUresult NotSupported() { return CUDA_ERROR_NOT_SUPPORTED; }

struct Tables {
  Driver legacy;
  Driver per_thread;
  Lookup lookup = nullptr;
};

std::atomic<bool> exiting{false};
std::atomic<bool> initialized{false};

void* Find(Lookup lookup, const char* name, int version, cuuint64_t flags) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  const CUresult result = lookup(name, &function, version, flags, &status);
  if (result != CUDA_SUCCESS || status != CU_GET_PROC_ADDRESS_SUCCESS || function == nullptr) {
    return reinterpret_cast<void*>(&NotSupported);
  }
  return function;
}

void Fill(Lookup lookup, cuuint64_t flags, Driver* driver) {
#define SIMGPU_DRIVER_FUNCTION(name) \
  driver->name = reinterpret_cast<decltype(driver->name)>(Find(lookup, #name, CUDA_VERSION, flags));
#define SIMGPU_DRIVER_FUNCTION_OF(name, version) \
  driver->name = reinterpret_cast<decltype(driver->name)>(Find(lookup, #name, version, flags));
#include "simgpu/runtime/driver_functions.def"
}

// Never freed: the program's own exit handlers may still call the runtime.
Tables* Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    if (IsVerbose()) fprintf(stderr, "simgpu: no driver: %s\n", dlerror());
    return nullptr;
  }
  auto lookup = reinterpret_cast<Lookup>(dlsym(library, "cuGetProcAddress_v2"));
  if (lookup == nullptr) return nullptr;
  auto* tables = new Tables;
  tables->lookup = lookup;
  Fill(lookup, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &tables->legacy);
  Fill(lookup, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &tables->per_thread);
  // Registered after the driver was opened, so that it runs before the driver's own exit handlers.
  atexit([] { exiting.store(true, std::memory_order_release); });
  return tables;
}

Tables* GetTables() {
  static std::once_flag once;
  static std::atomic<Tables*> tables{nullptr};
  Tables* now = tables.load(std::memory_order_acquire);
  if (now != nullptr) return now;
  std::call_once(once, [] { tables.store(Open(), std::memory_order_release); });
  return tables.load(std::memory_order_acquire);
}

}  // namespace

const Driver* Opened(DefaultStream stream, cudaError_t* error) {
  Tables* tables = GetTables();
  if (tables == nullptr) {
    *error = cudaErrorInsufficientDriver;
    return nullptr;
  }
  return stream == DefaultStream::kLegacy ? &tables->legacy : &tables->per_thread;
}

const Driver* Ready(DefaultStream stream, cudaError_t* error) {
  const Driver* driver = Opened(stream, error);
  if (driver == nullptr || initialized.load(std::memory_order_acquire)) return driver;
  const CUresult result = driver->cuInit(0);
  if (result != CUDA_SUCCESS) {
    *error = static_cast<cudaError_t>(result);
    return nullptr;
  }
  initialized.store(true, std::memory_order_release);
  return driver;
}

decltype(&::cuGetProcAddress) ProcAddressLookup() {
  Tables* tables = GetTables();
  return tables == nullptr ? nullptr : tables->lookup;
}

bool Exiting() { return exiting.load(std::memory_order_acquire); }

}  // namespace simgpu::runtime
