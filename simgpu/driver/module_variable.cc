// See module_variable.h.

#include "simgpu/driver/module_variable.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "simgpu/driver/alloc.h"
#include "simgpu/driver/memory.h"
#include "simgpu/driver/module.h"
#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

bool IsAlive(CUdeviceptr address) {
  const Range* range = FindRange(address);
  return range != nullptr && range->base == address && range->kind == Kind::kVariable;
}

// As contexts, modules take nothing of a device's capacity.
CUresult PlaceBytes(size_t bytes, int device, Range** range) {
  std::unique_ptr<Physical> physical;
  CUresult result = NewPhysical(kHostMemory, ChargedBytes(bytes), &physical);
  if (result != CUDA_SUCCESS) return result;
  *range = PlaceRange(Kind::kVariable, std::move(physical), bytes, &result);
  if (*range != nullptr) (*range)->device = device;
  return result;
}

void Free(CUdeviceptr address) {
  if (IsAlive(address)) FreeRange(FindRange(address), "unloaded with its module");
}

}  // namespace

void AddVariables(const TwinImage& image, Variables* variables) {
  for (uint64_t i = 0; i < image.variable_count; ++i) {
    const TwinVariable& twin = image.variables[i];
    const auto [added, is_new] = variables->try_emplace(twin.name);
    Variable& variable = added->second;
    if (!is_new && variable.bytes >= twin.bytes) continue;
    variable.bytes = twin.bytes;
    const auto* initial = static_cast<const unsigned char*>(twin.initial);
    variable.initial.assign(initial, initial + twin.bytes);
  }
}

CUresult InstanceOf(const std::string& name, Variable* variable, int device, CUcontext owner,
                    CUdeviceptr* address) {
  CUdeviceptr& instance = variable->instances[device];
  if (instance == 0 || !IsAlive(instance)) {
    Range* range = nullptr;
    if (const CUresult bad = PlaceBytes(variable->bytes, device, &range); bad != CUDA_SUCCESS) {
      LogAlways("device variable %s: no memory for its %zu bytes", name.c_str(), variable->bytes);
      return bad;
    }
    range->owner = owner;
    instance = range->base;
    DeviceBytes open;
    auto* bytes = reinterpret_cast<unsigned char*>(range->base);
    memset(bytes, 0, variable->bytes);
    memcpy(bytes, variable->initial.data(), std::min(variable->initial.size(), variable->bytes));
  }
  *address = instance;
  return CUDA_SUCCESS;
}

std::vector<int> DevicesOf(const Variables& variables) {
  std::set<int> devices;
  for (const auto& [name, variable] : variables) {
    for (const auto& [device, address] : variable.instances) devices.insert(device);
  }
  return {devices.begin(), devices.end()};
}

void FreeVariables(Variables* variables) {
  for (auto& [name, variable] : *variables) {
    for (const auto& [device, address] : variable.instances) Free(address);
    variable.instances.clear();
  }
}

void FreeVariablesOn(int device, Variables* variables) {
  for (auto& [name, variable] : *variables) {
    const auto found = variable.instances.find(device);
    if (found == variable.instances.end()) continue;
    Free(found->second);
    variable.instances.erase(found);
  }
}

CUresult AddressesFor(const TwinImage& image, CUmodule module, int device,
                      VariableAddresses* addresses) {
  AddVariables(image, &module->variables);
  for (uint64_t i = 0; i < image.variable_count; ++i) {
    const char* name = image.variables[i].name;
    CUdeviceptr address = 0;
    const CUresult bad =
        InstanceOf(name, &module->variables[name], device, module->context, &address);
    if (bad != CUDA_SUCCESS) return bad;
    addresses->push_back(reinterpret_cast<void*>(address));
  }
  return CUDA_SUCCESS;
}

}  // namespace simgpu
