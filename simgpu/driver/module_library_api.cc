// Entry points of libraries and kernels: the context-independent form of modules and functions.

#include <cuda.h>

#include "simgpu/driver/module.h"
#include "simgpu/driver/stream.h"

namespace simgpu {

// module_api.cc.
CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, const void* handle);
CUresult SetFunctionAttribute(const void* handle, CUfunction_attribute attribute, int value);
CUresult ParamInfo(const void* handle, size_t index, size_t* offset, size_t* size);
CUresult FunctionName(const char** name, const void* handle);

namespace {

CUresult LoadLibrary(CUlibrary* out, const void* image, const char* path) {
  Lock lock(DriverLock());
  if (!Initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  if (out == nullptr || (image == nullptr && path == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  CUmodule module = nullptr;
  const CUresult result = path != nullptr ? Modules::Get().LoadFile(path, &module)
                                          : Modules::Get().Load(image, &module);
  if (result != CUDA_SUCCESS) return result;
  auto* library = new CUlib_st;
  library->module = module;
  module->library = library;
  Modules::Get().libraries().insert(library);
  *out = library;
  return CUDA_SUCCESS;
}

// Runs `answer()` when `library` is alive.
template <typename Answer>
CUresult WithLibrary(CUlibrary library, Answer answer) {
  Lock lock(DriverLock());
  if (!Modules::Get().IsLibrary(library)) return CUDA_ERROR_INVALID_HANDLE;
  return answer();
}

CUkernel AsKernel(CUkernel kernel) {
  return kernel != nullptr && kernel->magic == kKernelMagic ? kernel : nullptr;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                                      unsigned, CUlibraryOption*, void**, unsigned) {
  SIMGPU_ENTER();
  return simgpu::LoadLibrary(library, code, nullptr);
}

SIMGPU_API CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*,
                                          void**, unsigned, CUlibraryOption*, void**, unsigned) {
  SIMGPU_ENTER();
  return simgpu::LoadLibrary(library, nullptr, path);
}

SIMGPU_API CUresult cuLibraryUnload(CUlibrary library) {
  SIMGPU_ENTER();
  std::vector<int> devices;
  const CUresult bad = simgpu::WithLibrary(library, [&] {
    devices = simgpu::DevicesOf(library->module->variables);
    return CUDA_SUCCESS;
  });
  if (bad != CUDA_SUCCESS) return bad;
  for (const int device : devices) simgpu::SynchronizeDevice(device);
  return simgpu::WithLibrary(library, [&] {
    simgpu::Modules::Get().Unload(library->module);
    simgpu::Modules::Get().libraries().erase(library);
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  SIMGPU_ENTER();
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::WithLibrary(
      library, [&] { return simgpu::Modules::Get().GetKernel(library, name, kernel); });
}

SIMGPU_API CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  SIMGPU_ENTER();
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::WithLibrary(library, [&] {
    *count = static_cast<unsigned>(library->module->kernels.size());
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count,
                                              CUlibrary library) {
  SIMGPU_ENTER();
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::WithLibrary(library, [&] {
    unsigned filled = 0;
    for (const auto& [name, kernel] : library->module->kernels) {
      if (filled == count) break;
      simgpu::Modules::Get().GetKernel(library, name.c_str(), &kernels[filled++]);
    }
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  SIMGPU_ENTER();
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext context = nullptr;
  if (const CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  return simgpu::WithLibrary(library, [&] {
    *module = library->module;
    return CUDA_SUCCESS;
  });
}

SIMGPU_API CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library,
                                       const char* name) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (const CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::WithLibrary(library, [&] {
    return simgpu::Modules::Get().GetGlobal(library->module, name, context->device, address, bytes);
  });
}

SIMGPU_API CUresult cuLibraryGetManaged(CUdeviceptr*, size_t*, CUlibrary library,
                                        const char* name) {
  SIMGPU_ENTER();
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Managed variables of images are not simulated.
  return simgpu::WithLibrary(library, [] { return CUDA_ERROR_NOT_FOUND; });
}

SIMGPU_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (const CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (simgpu::AsKernel(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = kernel->function;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  SIMGPU_ENTER();
  if (simgpu::AsKernel(kernel) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *library = kernel->library;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  SIMGPU_ENTER();
  return simgpu::FunctionName(name, kernel);
}

SIMGPU_API CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset,
                                         size_t* size) {
  SIMGPU_ENTER();
  return simgpu::ParamInfo(kernel, index, offset, size);
}

SIMGPU_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute,
                                         CUkernel kernel, CUdevice) {
  SIMGPU_ENTER();
  return simgpu::FunctionAttribute(value, attribute, kernel);
}

SIMGPU_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                         CUdevice) {
  SIMGPU_ENTER();
  return simgpu::SetFunctionAttribute(kernel, attribute, value);
}

SIMGPU_API CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  SIMGPU_ENTER();
  return simgpu::FunctionOf(kernel) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
