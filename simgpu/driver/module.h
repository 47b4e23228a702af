// Modules, libraries and kernels: what images say about the kernels they hold. No GPU code is
// decoded: a kernel is known from a host twin or from the PTX text in an image.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_MODULE_H_
#define SIMGPU_DRIVER_MODULE_H_

#include <cuda.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "simgpu/driver/module_variable.h"
#include "simgpu/driver/twin_image.h"

namespace simgpu {

struct KernelParam {
  size_t offset = 0;
  size_t size = 0;
  uint32_t flags = 0;  // kTwinPointer ..., of twins; 0 when unknown
};

// Everything known about one kernel of an image.
struct Kernel {
  std::string name;
  std::vector<KernelParam> params;
  size_t param_bytes = 0;
  const TwinKernel* twin = nullptr;
  const TwinImage* image = nullptr;  // the twin's
  int static_shared_bytes = 0;
  int max_threads = 1024;
  bool said_untraced = false;
};

// Parses PTX text into kernels. Returns an empty string, or a sentence that says what is wrong.
std::string ParsePtx(const std::string& text, std::vector<Kernel>* kernels);

}  // namespace simgpu

// A loaded image. `cuModuleLoad*` and `cuLibraryLoad*` both make one.
struct CUmod_st {
  CUcontext context = nullptr;  // null for a library's
  CUlibrary library = nullptr;
  bool opaque = false;     // holds GPU code: names are found among the twins
  void* handle = nullptr;  // of dlopen, when the image came from a shared object
  std::map<std::string, std::unique_ptr<simgpu::Kernel>> kernels;
  std::map<std::string, CUfunction> functions;
  simgpu::Variables variables;
};

inline constexpr uint32_t kFunctionMagic = 0x46554e43;
inline constexpr uint32_t kKernelMagic = 0x4b45524e;

struct CUfunc_st {
  uint32_t magic = kFunctionMagic;
  CUmodule module = nullptr;
  simgpu::Kernel* kernel = nullptr;
  int max_dynamic_shared = 48 * 1024;
  std::map<int, int> attributes;  // other values that were set
};

struct CUkern_st {
  uint32_t magic = kKernelMagic;
  CUlibrary library = nullptr;
  CUfunction function = nullptr;
};

struct CUlib_st {
  CUmodule module = nullptr;
  std::map<std::string, std::unique_ptr<CUkern_st>> kernels;
};

namespace simgpu {

class Modules {
 public:
  static Modules& Get();

  // Loads what `image` points to: a twin image, PTX text, a fat binary or its wrapper.
  CUresult Load(const void* image, CUmodule* module);
  // A file: a shared object with twins, or PTX text.
  CUresult LoadFile(const char* path, CUmodule* module);
  void Unload(CUmodule module);
  bool IsModule(CUmodule module) const { return modules_.count(module) != 0; }
  bool IsLibrary(CUlibrary library) const { return libraries_.count(library) != 0; }
  std::unordered_set<CUlibrary>& libraries() { return libraries_; }

  CUresult GetFunction(CUmodule module, const char* name, CUfunction* function);
  // The variable's instance for the module's device, or for `device` of a library's module.
  CUresult GetGlobal(CUmodule module, const char* name, int device, CUdeviceptr* address,
                     size_t* bytes);
  CUresult GetKernel(CUlibrary library, const char* name, CUkernel* kernel);
  void DropContext(CUcontext context);

 private:
  Modules() = default;
  CUresult LoadTwins(const TwinImage* image, CUmodule module);
  CUresult LoadPtx(const std::string& text, CUmodule module);
  CUresult LoadFat(const void* image, CUmodule module);
  struct Twin {
    const TwinKernel* kernel = nullptr;
    const TwinImage* image = nullptr;
  };
  static std::unique_ptr<Kernel> KernelOfTwin(const Twin& twin);
  const Twin* FindTwin(const std::string& name) const;
  void LoadConfiguredTwins();

  std::unordered_set<CUmodule> modules_;
  std::unordered_set<CUlibrary> libraries_;
  std::map<std::string, Twin> twins_;  // of every image seen, by kernel name
  bool configured_twins_ = false;
};

// The function behind a handle that is a CUfunction or a CUkernel; null when it is neither.
CUfunction FunctionOf(const void* handle);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_MODULE_H_
