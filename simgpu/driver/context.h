// Contexts beyond what state.h tells everyone: creation, primary contexts, per-context settings and
// the stack of the calling thread.
// Thread rule: callers hold the driver lock, except for ContextStack.

#ifndef SIMGPU_DRIVER_CONTEXT_H_
#define SIMGPU_DRIVER_CONTEXT_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "simgpu/driver/state.h"

namespace simgpu {

struct ContextSettings {
  uint64_t id = 0;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
  std::map<CUlimit, size_t> limits;
};

std::vector<CUcontext>&
ContextStack();                        // of the calling thread; the current context is at the back
CUcontext PrimaryContext(int device);  // alive only while retained
CUcontext RetainPrimary(int device);
CUcontext NewContext(int device, unsigned flags);
ContextSettings* SettingsOf(CUcontext context);  // null if the context is not alive
bool AddPeer(CUcontext from, CUcontext to);      // false: was there already
bool RemovePeer(CUcontext from, CUcontext to);   // false: was not there

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_CONTEXT_H_
