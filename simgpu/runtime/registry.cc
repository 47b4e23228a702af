// Registered images and their contents, and the entry points that nvcc's host code calls.
// Threads: see the header.

#include "simgpu/runtime/registry.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/pointer_table.h"

namespace simgpu::runtime {
namespace {

constexpr int kWrapperMagic = 0x466243b1;

// As fatbinary_section.h states it.
struct Wrapper {
  int magic;
  int version;
  const void* data;
  void* filename_or_fatbins;
};

struct Image;

struct Kernel {
  Image* image = nullptr;  // null for kernels of a cudaLibrary_t
  std::string name;
  const void* stub = nullptr;
  std::atomic<CUkernel> kernel{nullptr};
};

struct Symbol {
  Image* image = nullptr;
  std::string name;
  const void* shadow = nullptr;
};

struct Image {
  const void* data = nullptr;
  bool registered = true;
  std::mutex lock;  // held while loading, so that one thread loads
  std::atomic<CUlibrary> library{nullptr};
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::unique_ptr<Symbol>> symbols;
  struct Managed {
    void** host_pointer;
    std::string name;
  };
  std::vector<Managed> managed;
};

// Never destroyed: nvcc's exit handlers unregister after other static objects are gone.
struct Registry {
  std::mutex lock;               // writers of what follows
  std::vector<Image*> images;    // the unregistered too: a reader may hold a record of one
  PointerTable<Kernel> kernels;  // by host stub, and by cudaKernel_t
  PointerTable<Symbol> symbols;  // by host shadow
};

Registry& GetRegistry() {
  static auto* registry = new Registry;
  return *registry;
}

int Load(const Driver& d, Image* image, CUlibrary* library) {
  *library = image->library.load(std::memory_order_acquire);
  if (*library != nullptr) return cudaSuccess;
  std::lock_guard<std::mutex> guard(image->lock);
  *library = image->library.load(std::memory_order_relaxed);
  if (*library != nullptr) return cudaSuccess;
  if (image->data == nullptr) return cudaErrorInvalidKernelImage;
  const int code =
      d.cuLibraryLoadData(library, image->data, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code == CUDA_SUCCESS) image->library.store(*library, std::memory_order_release);
  return code;
}

void LoadAll(const Driver& d) {
  Registry& registry = GetRegistry();
  std::vector<Image*> images;  // the unregistered too: a reader may hold a record of one
  {
    std::lock_guard<std::mutex> guard(registry.lock);
    for (Image* image : registry.images) {
      if (image->registered) images.push_back(image);
    }
  }
  CUlibrary library = nullptr;
  for (Image* image : images) Load(d, image, &library);
}

// A device that runs host twins finds a kernel's twin in any image it has seen; the one that holds
// it may be registered and not loaded yet.
int Resolve(const Driver& d, Kernel* record, CUkernel* kernel) {
  CUlibrary library = nullptr;
  if (int code = Load(d, record->image, &library)) return code;
  int code = d.cuLibraryGetKernel(kernel, library, record->name.c_str());
  if (code == CUDA_ERROR_NOT_FOUND) {
    LoadAll(d);
    code = d.cuLibraryGetKernel(kernel, library, record->name.c_str());
  }
  if (code == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
  if (code != CUDA_SUCCESS) return code;
  Registry& registry = GetRegistry();
  std::lock_guard<std::mutex> guard(registry.lock);
  record->kernel.store(*kernel, std::memory_order_release);
  registry.kernels.Insert(*kernel, record);
  return cudaSuccess;
}

int FillManaged(const Driver& d, Image* image) {
  CUlibrary library = nullptr;
  if (image->managed.empty()) return cudaSuccess;
  if (int code = Load(d, image, &library)) return code;
  for (const Image::Managed& variable : image->managed) {
    CUdeviceptr address = 0;
    size_t bytes = 0;
    if (int code = d.cuLibraryGetManaged(&address, &bytes, library, variable.name.c_str())) {
      return code;
    }
    *variable.host_pointer = reinterpret_cast<void*>(address);
  }
  return cudaSuccess;
}

void Unload(Image* image) {
  CUlibrary library = image->library.exchange(nullptr, std::memory_order_acq_rel);
  cudaError_t error = cudaSuccess;
  if (library == nullptr || Exiting()) return;
  const Driver* driver = Ready(DefaultStream::kLegacy, &error);
  if (driver != nullptr) driver->cuLibraryUnload(library);
}

Image* AsImage(void** handle) { return reinterpret_cast<Image*>(handle); }

}  // namespace

int FindKernel(const Driver& d, const void* function, CUkernel* kernel) {
  Kernel* record = GetRegistry().kernels.Find(function);
  if (record == nullptr) return cudaErrorInvalidDeviceFunction;
  *kernel = record->kernel.load(std::memory_order_acquire);
  return *kernel != nullptr ? int{cudaSuccess} : Resolve(d, record, kernel);
}

const void* StubOf(CUkernel kernel) {
  const Kernel* record = GetRegistry().kernels.Find(kernel);
  return record != nullptr && record->stub != nullptr ? record->stub : kernel;
}

void RememberKernel(CUkernel kernel) {
  Registry& registry = GetRegistry();
  std::lock_guard<std::mutex> guard(registry.lock);
  if (kernel == nullptr || registry.kernels.Find(kernel) != nullptr) return;
  auto* record = new Kernel;
  record->kernel.store(kernel, std::memory_order_relaxed);
  registry.kernels.Insert(kernel, record);
}

int FindSymbol(const Driver& d, const void* symbol, CUdeviceptr* address, size_t* bytes) {
  const Symbol* record = GetRegistry().symbols.Find(symbol);
  if (record == nullptr) return cudaErrorInvalidSymbol;
  CUlibrary library = nullptr;
  if (int code = Load(d, record->image, &library)) return code;
  const int code = d.cuLibraryGetGlobal(address, bytes, library, record->name.c_str());
  return code == CUDA_ERROR_NOT_FOUND ? int{cudaErrorInvalidSymbol} : code;
}

// ---- Called by nvcc's host code; the signatures are those of crt/host_runtime.h.

SIMGPU_RUNTIME_API void** __cudaRegisterFatBinary(void* wrapper_address) {
  const auto* wrapper = static_cast<const Wrapper*>(wrapper_address);
  auto* image = new Image;
  if (wrapper != nullptr && wrapper->magic == kWrapperMagic) image->data = wrapper->data;
  Registry& registry = GetRegistry();
  std::lock_guard<std::mutex> guard(registry.lock);
  registry.images.push_back(image);
  return reinterpret_cast<void**>(image);
}

SIMGPU_RUNTIME_API void __cudaRegisterFatBinaryEnd(void**) {}

SIMGPU_RUNTIME_API void __cudaRegisterFunction(void** handle, const char* stub, char*,
                                               const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                               int*) {
  Registry& registry = GetRegistry();
  auto record = std::make_unique<Kernel>();
  record->image = AsImage(handle);
  record->name = name;
  record->stub = stub;
  std::lock_guard<std::mutex> guard(registry.lock);
  registry.kernels.Insert(stub, record.get());
  AsImage(handle)->kernels.push_back(std::move(record));
}

SIMGPU_RUNTIME_API void __cudaRegisterVar(void** handle, char* shadow, char*, const char* name, int,
                                          size_t, int, int) {
  Registry& registry = GetRegistry();
  auto record = std::make_unique<Symbol>(Symbol{AsImage(handle), name, shadow});
  std::lock_guard<std::mutex> guard(registry.lock);
  registry.symbols.Insert(shadow, record.get());
  AsImage(handle)->symbols.push_back(std::move(record));
}

SIMGPU_RUNTIME_API void __cudaRegisterManagedVar(void** handle, void** host_pointer, char*,
                                                 const char* name, int, size_t, int, int) {
  AsImage(handle)->managed.push_back({host_pointer, name});
}

SIMGPU_RUNTIME_API char __cudaInitModule(void** handle) {
  const int code = RunWithContext(DefaultStream::kLegacy,
                                  [&](const Driver& d) { return FillManaged(d, AsImage(handle)); });
  return Record(code) == cudaSuccess ? 1 : 0;
}

SIMGPU_RUNTIME_API void __cudaUnregisterFatBinary(void** handle) {
  Image* image = AsImage(handle);
  if (image == nullptr) return;
  Registry& registry = GetRegistry();
  {
    std::lock_guard<std::mutex> guard(registry.lock);
    for (const auto& record : image->kernels) {
      if (CUkernel kernel = record->kernel.load()) registry.kernels.Erase(kernel);
      registry.kernels.Erase(record->stub);
    }
    for (const auto& record : image->symbols) registry.symbols.Erase(record->shadow);
    image->registered = false;
  }
  Unload(image);
}

}  // namespace simgpu::runtime
