// Modules and libraries as they go: what was learned of their functions' parameters goes with them.

#include "interpose/hook_gate.h"

namespace tidemark::interpose {
namespace {

template <typename Call>
CUresult Unloaded(const Call& call) {
  Guard guard;
  CUresult result = call();
  if (Manages(guard)) ManagerFunctionsChanged(guard);
  return result;
}

}  // namespace
}  // namespace tidemark::interpose

using namespace tidemark::interpose;  // NOLINT: the hooks below are the C names of the driver

CUresult Hook_cuModuleUnload(CUmodule module) {
  return Unloaded([&] { return tidemark_real_cuModuleUnload(module); });
}
CUresult Hook_cuLibraryUnload(CUlibrary library) {
  return Unloaded([&] { return tidemark_real_cuLibraryUnload(library); });
}
