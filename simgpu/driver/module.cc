// See module.h.

#include "simgpu/driver/module.h"

#include <dlfcn.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

constexpr uint32_t kWrapperMagic = 0x466243b1;  // fatbinary_section.h: FATBINC_MAGIC
constexpr uint32_t kFatMagic = 0xba55ed50;

struct FatWrapper {  // fatbinary_section.h: __fatBinC_Wrapper_t
  uint32_t magic;
  uint32_t version;
  const void* data;
  void* filename_or_fatbins;
};

// The container's head; what follows is opaque here.
struct FatHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t body_bytes;
};

// A shared object with twins exports this: a list of images that ends with null.
constexpr char kTwinListSymbol[] = "simgpu_twin_images";
using TwinList = const void* const* (*)();

template <typename T>
T ReadAs(const void* image) {
  T value;
  memcpy(&value, image, sizeof(value));
  return value;
}

// Text that starts with ".version" somewhere in the container and runs to the first zero byte.
std::vector<std::string> PtxTextsIn(const char* bytes, size_t size) {
  static constexpr char kStart[] = ".version ";
  std::vector<std::string> texts;
  size_t at = 0;
  while (at < size) {
    const void* found = memmem(bytes + at, size - at, kStart, sizeof(kStart) - 1);
    if (found == nullptr) break;
    const size_t start = static_cast<size_t>(static_cast<const char*>(found) - bytes);
    const size_t length = strnlen(bytes + start, size - start);
    texts.emplace_back(bytes + start, length);
    at = start + length;
  }
  return texts;
}

bool LooksLikeText(const char* image) {
  // PTX starts with comments, white space or a directive.
  return image[0] == '/' || image[0] == '.' || image[0] == '\n' || image[0] == ' ' ||
         image[0] == '\t' || image[0] == '\r';
}

}  // namespace

Modules& Modules::Get() {
  static auto* modules = new Modules;
  return *modules;
}

std::unique_ptr<Kernel> Modules::KernelOfTwin(const Twin& found) {
  const TwinKernel& twin = *found.kernel;
  auto kernel = std::make_unique<Kernel>();
  kernel->name = twin.name;
  kernel->twin = &twin;
  kernel->image = found.image;
  kernel->static_shared_bytes = static_cast<int>(twin.static_shared_bytes);
  if (twin.max_threads_per_block != 0) {
    kernel->max_threads = static_cast<int>(twin.max_threads_per_block);
  }
  for (uint32_t i = 0; i < twin.param_count; ++i) {
    const TwinParam& param = twin.params[i];
    kernel->params.push_back({param.offset, param.size, param.flags});
    kernel->param_bytes = std::max<size_t>(kernel->param_bytes, param.offset + param.size);
  }
  return kernel;
}

CUresult Modules::LoadTwins(const TwinImage* image, CUmodule module) {
  if (image->version != kTwinVersion) {
    LogAlways("a twin image has version %u; this device reads version %u", image->version,
              kTwinVersion);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  for (uint32_t i = 0; i < image->kernel_count; ++i) {
    const Twin twin{&image->kernels[i], image};
    twins_[twin.kernel->name] = twin;
    module->kernels[twin.kernel->name] = KernelOfTwin(twin);
  }
  AddVariables(*image, &module->variables);
  return CUDA_SUCCESS;
}

CUresult Modules::LoadPtx(const std::string& text, CUmodule module) {
  std::vector<Kernel> kernels;
  if (const std::string error = ParsePtx(text, &kernels); !error.empty()) {
    LogAlways("PTX was refused: %s", error.c_str());
    return CUDA_ERROR_INVALID_PTX;
  }
  for (Kernel& kernel : kernels) {
    const std::string name = kernel.name;
    const Twin* twin = FindTwin(name);
    module->kernels[name] =
        twin != nullptr ? KernelOfTwin(*twin) : std::make_unique<Kernel>(std::move(kernel));
    if (twin != nullptr) AddVariables(*twin->image, &module->variables);
  }
  ParsePtxVariables(text, &module->variables);
  return CUDA_SUCCESS;
}

CUresult Modules::LoadFat(const void* image, CUmodule module) {
  const auto header = ReadAs<FatHeader>(image);
  const auto* bytes = static_cast<const char*>(image);
  module->opaque = true;
  for (const std::string& text : PtxTextsIn(bytes, header.header_bytes + header.body_bytes)) {
    // The same kernels for several architectures: the parameters are the same.
    if (LoadPtx(text, module) != CUDA_SUCCESS) LogVerbose("PTX inside a fat binary was not used");
  }
  return CUDA_SUCCESS;
}

CUresult Modules::Load(const void* image, CUmodule* out) {
  if (image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LoadConfiguredTwins();
  auto module = std::make_unique<CUmod_st>();
  CUresult result = CUDA_ERROR_INVALID_IMAGE;
  const uint32_t magic = ReadAs<uint32_t>(image);
  if (magic == kWrapperMagic) return Load(ReadAs<FatWrapper>(image).data, out);
  if (magic == kFatMagic) {
    result = LoadFat(image, module.get());
  } else if (memcmp(image, "\177ELF", 4) == 0) {
    module->opaque = true;  // a cubin: its kernels are those that have a twin
    result = CUDA_SUCCESS;
  } else if (LooksLikeText(static_cast<const char*>(image))) {
    result = LoadPtx(static_cast<const char*>(image), module.get());
  } else if (ReadAs<uint64_t>(image) == kTwinMagic) {
    result = LoadTwins(static_cast<const TwinImage*>(image), module.get());
  }
  if (result != CUDA_SUCCESS) return result;
  *out = module.release();
  modules_.insert(*out);
  return CUDA_SUCCESS;
}

CUresult Modules::LoadFile(const char* path, CUmodule* out) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::stringstream bytes;
  bytes << file.rdbuf();
  const std::string text = bytes.str();
  if (text.size() < 16) return CUDA_ERROR_INVALID_IMAGE;
  if (text.compare(0, 4, "\177ELF") != 0) return Load(text.c_str(), out);
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Load(text.c_str(), out);
  const auto list = reinterpret_cast<TwinList>(dlsym(handle, kTwinListSymbol));
  if (list == nullptr) {
    dlclose(handle);
    LogAlways("%s is a shared object without %s, so it holds no twins", path, kTwinListSymbol);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  auto module = std::make_unique<CUmod_st>();
  for (const void* const* image = list(); *image != nullptr; ++image) {
    const CUresult result = LoadTwins(static_cast<const TwinImage*>(*image), module.get());
    if (result != CUDA_SUCCESS) return result;
  }
  *out = module.release();
  modules_.insert(*out);
  return CUDA_SUCCESS;
}

void Modules::LoadConfiguredTwins() {
  if (configured_twins_) return;
  configured_twins_ = true;
  for (const std::string& path : GetConfig().twins) {
    CUmodule module = nullptr;
    if (LoadFile(path.c_str(), &module) != CUDA_SUCCESS) {
      LogAlways("twins=%s: the file does not exist or holds no host twins", path.c_str());
    }
  }
}

const Modules::Twin* Modules::FindTwin(const std::string& name) const {
  const auto found = twins_.find(name);
  return found == twins_.end() ? nullptr : &found->second;
}

void Modules::Unload(CUmodule module) {
  // Twin kernels stay known by name: their code belongs to a loaded object, not to the module.
  // Handles and kernels stay allocated, because queued launches may still name them.
  modules_.erase(module);
  FreeVariables(&module->variables);
}

CUresult Modules::GetGlobal(CUmodule module, const char* name, int device, CUdeviceptr* address,
                            size_t* bytes) {
  const auto found = module->variables.find(name);
  if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  CUdeviceptr instance = 0;
  const CUresult bad = InstanceOf(found->first, &found->second, device, module->context, &instance);
  if (bad != CUDA_SUCCESS) return bad;
  if (address != nullptr) *address = instance;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

CUresult Modules::GetFunction(CUmodule module, const char* name, CUfunction* function) {
  if (const auto known = module->functions.find(name); known != module->functions.end()) {
    *function = known->second;
    return CUDA_SUCCESS;
  }
  auto kernel = module->kernels.find(name);
  if (kernel == module->kernels.end() && module->opaque) {
    if (const Twin* twin = FindTwin(name); twin != nullptr) {
      kernel = module->kernels.emplace(name, KernelOfTwin(*twin)).first;
    } else {
      LogVerbose("kernel %s: the image holds GPU code only, and no host twin has that name", name);
    }
  }
  if (kernel == module->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  auto* made = new CUfunc_st;
  made->module = module;
  made->kernel = kernel->second.get();
  module->functions[name] = made;
  *function = made;
  return CUDA_SUCCESS;
}

CUresult Modules::GetKernel(CUlibrary library, const char* name, CUkernel* out) {
  std::unique_ptr<CUkern_st>& kernel = library->kernels[name];
  if (kernel == nullptr) {
    CUfunction function = nullptr;
    if (const CUresult bad = GetFunction(library->module, name, &function); bad != CUDA_SUCCESS) {
      library->kernels.erase(name);
      return bad;
    }
    kernel = std::make_unique<CUkern_st>();
    kernel->library = library;
    kernel->function = function;
  }
  *out = kernel.get();
  return CUDA_SUCCESS;
}

void Modules::DropContext(CUcontext context) {
  for (const CUlibrary library : libraries_) {
    FreeVariablesOn(context->device, &library->module->variables);
  }
  std::erase_if(modules_, [&](CUmodule module) { return module->context == context; });
}

CUfunction FunctionOf(const void* handle) {
  if (handle == nullptr) return nullptr;
  const auto magic = ReadAs<uint32_t>(handle);
  if (magic == kFunctionMagic) {
    return static_cast<CUfunction>(const_cast<void*>(handle));
  }
  if (magic == kKernelMagic) return static_cast<const CUkern_st*>(handle)->function;
  return nullptr;
}

}  // namespace simgpu
