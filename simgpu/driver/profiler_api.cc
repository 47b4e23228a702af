// cuProfilerStart and cuProfilerStop: without a profiler attached they have no effect, as
// documented. Thread rule: callable from any thread.

#include <cuda.h>
#include <cudaProfiler.h>

#include "simgpu/driver/state.h"

SIMGPU_API CUresult CUDAAPI cuProfilerStart(void) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  return simgpu::RequireContext(&context);
}

SIMGPU_API CUresult CUDAAPI cuProfilerStop(void) {
  SIMGPU_ENTER();
  CUcontext context = nullptr;
  return simgpu::RequireContext(&context);
}
