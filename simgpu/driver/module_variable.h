// Device variables of modules: what cuModuleGetGlobal and cuLibraryGetGlobal find, and what a
// launch hands to the twins that use them. A variable has one instance for each module and device;
// it begins with its initial value when it is first asked for or used.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_MODULE_VARIABLE_H_
#define SIMGPU_DRIVER_MODULE_VARIABLE_H_

#include <cuda.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/driver/twin_image.h"

namespace simgpu {

struct Variable {
  size_t bytes = 0;
  std::vector<unsigned char> initial;    // shorter than bytes: the rest is zeros
  std::map<int, CUdeviceptr> instances;  // by device; looked up again before each use
};

using Variables = std::map<std::string, Variable>;

// Adds what the image declares and `variables` does not know yet.
void AddVariables(const TwinImage& image, Variables* variables);

// The instance for `device`, made if there is none. Memory of a module goes with its context
// `owner`; null for a library's, which lives until FreeVariables.
CUresult InstanceOf(const std::string& name, Variable* variable, int device, CUcontext owner,
                    CUdeviceptr* address);

// Where instances are. Whoever frees them waits for these devices first, as cuMemFree does.
std::vector<int> DevicesOf(const Variables& variables);
void FreeVariables(Variables* variables);
void FreeVariablesOn(int device, Variables* variables);

// PTX text's `.global` and `.const` variables at module scope, after its parse as PTX succeeded.
void ParsePtxVariables(const std::string& text, Variables* variables);

// Where a launch of a kernel of `image`, in `module` and on `device`, finds the image's variables.
using VariableAddresses = std::vector<void*>;
CUresult AddressesFor(const TwinImage& image, CUmodule module, int device,
                      VariableAddresses* addresses);

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_MODULE_VARIABLE_H_
