// Entry points of modules and functions.

#include <cuda.h>

#include <cstring>

#include "simgpu/driver/module.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

CUresult LoadImage(const void* image, CUmodule* module) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Modules::Get().Load(image, module);
  if (result == CUDA_SUCCESS) (*module)->context = context;
  return result;
}

CUresult LoadPath(const char* path, CUmodule* module) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = Modules::Get().LoadFile(path, module);
  if (result == CUDA_SUCCESS) (*module)->context = context;
  return result;
}

CUresult UnloadModule(CUmodule module) {
  std::vector<int> devices;
  {
    Lock lock(DriverLock());
    if (!Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
    devices = DevicesOf(module->variables);
  }
  for (const int device : devices) SynchronizeDevice(device);
  Lock lock(DriverLock());
  if (!Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
  Modules::Get().Unload(module);
  return CUDA_SUCCESS;
}

CUresult FindFunction(CUmodule module, const char* name, CUfunction* function) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
  return Modules::Get().GetFunction(module, name, function);
}

}  // namespace

CUresult FunctionAttribute(int* value, CUfunction_attribute attribute, const void* handle) {
  Lock lock(DriverLock());
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function->kernel->max_threads;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = function->kernel->static_shared_bytes;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = function->max_dynamic_shared;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = 32;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = 90;
      return CUDA_SUCCESS;
    default:
      break;
  }
  if (attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  const auto set = function->attributes.find(attribute);
  const bool carveout = attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  *value = set != function->attributes.end() ? set->second : (carveout ? -1 : 0);
  return CUDA_SUCCESS;
}

CUresult SetFunctionAttribute(const void* handle, CUfunction_attribute attribute, int value) {
  Lock lock(DriverLock());
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      // 227 KiB a block, as on devices of compute capability 9.0.
      if (value < 0 || value + function->kernel->static_shared_bytes > 227 * 1024) {
        return CUDA_ERROR_INVALID_VALUE;
      }
      function->max_dynamic_shared = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
      function->attributes[attribute] = value;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      function->attributes[attribute] = value;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;  // the others may only be read
  }
}

CUresult ParamInfo(const void* handle, size_t index, size_t* offset, size_t* size) {
  Lock lock(DriverLock());
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset == nullptr || index >= function->kernel->params.size()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *offset = function->kernel->params[index].offset;
  if (size != nullptr) *size = function->kernel->params[index].size;
  return CUDA_SUCCESS;
}

CUresult FunctionName(const char** name, const void* handle) {
  Lock lock(DriverLock());
  const CUfunction function = FunctionOf(handle);
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = function->kernel->name.c_str();
  return CUDA_SUCCESS;
}

}  // namespace simgpu

SIMGPU_API CUresult cuModuleLoad(CUmodule* module, const char* path) {
  SIMGPU_ENTER();
  return simgpu::LoadPath(path, module);
}

SIMGPU_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  SIMGPU_ENTER();
  return simgpu::LoadImage(image, module);
}

SIMGPU_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*,
                                       void**) {
  SIMGPU_ENTER();
  return simgpu::LoadImage(image, module);
}

SIMGPU_API CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  SIMGPU_ENTER();
  return simgpu::LoadImage(image, module);
}

SIMGPU_API CUresult cuModuleUnload(CUmodule module) {
  SIMGPU_ENTER();
  return simgpu::UnloadModule(module);
}

SIMGPU_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  SIMGPU_ENTER();
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  SIMGPU_ENTER();
  return simgpu::FindFunction(module, name, function);
}

SIMGPU_API CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->kernels.size());
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned count,
                                               CUmodule module) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
  unsigned filled = 0;
  for (const auto& [name, kernel] : module->kernels) {
    if (filled == count) break;
    simgpu::Modules::Get().GetFunction(module, name.c_str(), &functions[filled++]);
  }
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                                         const char* name) {
  SIMGPU_ENTER();
  simgpu::Lock lock(simgpu::DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!simgpu::Modules::Get().IsModule(module)) return CUDA_ERROR_INVALID_HANDLE;
  // The module of a library serves whatever device is asked from.
  const CUcontext of = module->context != nullptr ? module->context : context;
  return simgpu::Modules::Get().GetGlobal(module, name, of->device, address, bytes);
}

SIMGPU_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction f) {
  SIMGPU_ENTER();
  return simgpu::FunctionAttribute(value, attribute, f);
}

SIMGPU_API CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute, int value) {
  SIMGPU_ENTER();
  return simgpu::SetFunctionAttribute(f, attribute, value);
}

SIMGPU_API CUresult cuFuncSetCacheConfig(CUfunction f, CUfunc_cache) {
  SIMGPU_ENTER();
  return simgpu::FunctionOf(f) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncGetModule(CUmodule* module, CUfunction f) {
  SIMGPU_ENTER();
  const CUfunction function = simgpu::FunctionOf(f);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = function->module;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncGetName(const char** name, CUfunction f) {
  SIMGPU_ENTER();
  return simgpu::FunctionName(name, f);
}

SIMGPU_API CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t* offset, size_t* size) {
  SIMGPU_ENTER();
  return simgpu::ParamInfo(f, index, offset, size);
}

SIMGPU_API CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction f) {
  SIMGPU_ENTER();
  if (simgpu::FunctionOf(f) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

SIMGPU_API CUresult cuFuncLoad(CUfunction f) {
  SIMGPU_ENTER();
  return simgpu::FunctionOf(f) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}
