// Waiting for a context: cuCtxSynchronize. Thread rule: waits without the driver lock.

#include <cuda.h>

#include "simgpu/driver/engine.h"
#include "simgpu/driver/state.h"

SIMGPU_API CUresult CUDAAPI cuCtxSynchronize(void) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  if (CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  return simgpu::SynchronizeContext(context);
}

SIMGPU_API CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
  SIMGPU_ENTER();
  if (context == nullptr) {
    if (CUresult bad = simgpu::RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  }
  return simgpu::SynchronizeContext(context);
}
