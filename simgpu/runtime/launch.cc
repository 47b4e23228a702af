// Launches: the public forms, and those that nvcc's host code emits. The path of a kernel that was
// launched before takes no lock here. Threads: any.

#include <cuda_runtime_api.h>

#include "simgpu/runtime/call.h"
#include "simgpu/runtime/launch_config.h"
#include "simgpu/runtime/registry.h"

namespace simgpu::runtime {
namespace {

struct Shape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

// <<<...>>> pushes its shape before the stub that it calls pops it; calls nest while arguments are
// evaluated. No destructor: threads launch until their very end.
constexpr int kDeepest = 64;
struct Pushed {
  Shape shape[kDeepest];
  int count = 0;
};
thread_local Pushed pushed;

// The driver takes a kernel that belongs to no context where it takes a function.

int LaunchKernel(const Driver& d, CUkernel kernel, const Shape& shape, void** args) {
  return d.cuLaunchKernel(AsFunction(kernel), shape.grid.x, shape.grid.y, shape.grid.z,
                          shape.block.x, shape.block.y, shape.block.z,
                          static_cast<unsigned>(shape.shared_bytes), shape.stream, args, nullptr);
}

// The runtime has its own name for a shape that no device could run. The bounds are those of every
// compute capability so far.
bool IsImpossible(const dim3& grid, const dim3& block) {
  constexpr unsigned kMaxGridX = 0x7fffffff;
  constexpr unsigned kMaxGridYZ = 65535;
  constexpr unsigned kMaxThreads = 1024;
  constexpr unsigned kMaxBlockZ = 64;
  const auto outside = [](unsigned value, unsigned most) { return value == 0 || value > most; };
  return outside(grid.x, kMaxGridX) || outside(grid.y, kMaxGridYZ) || outside(grid.z, kMaxGridYZ) ||
         outside(block.x, kMaxThreads) || outside(block.y, kMaxThreads) ||
         outside(block.z, kMaxBlockZ) || block.x * block.y * block.z > kMaxThreads;
}

int Launch(const Driver& d, const void* function, const Shape& shape, void** args) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  if (IsImpossible(shape.grid, shape.block)) return cudaErrorInvalidConfiguration;
  return LaunchKernel(d, kernel, shape, args);
}

int LaunchCooperative(const Driver& d, const void* function, const Shape& shape, void** args) {
  CUkernel kernel = nullptr;
  if (int code = FindKernel(d, function, &kernel)) return code;
  if (IsImpossible(shape.grid, shape.block)) return cudaErrorInvalidConfiguration;
  return d.cuLaunchCooperativeKernel(AsFunction(kernel), shape.grid.x, shape.grid.y, shape.grid.z,
                                     shape.block.x, shape.block.y, shape.block.z,
                                     static_cast<unsigned>(shape.shared_bytes), shape.stream, args);
}

// What __cudaGetKernel gave, or null when it failed; its error is then the thread's last one.
int LaunchHandle(const Driver& d, cudaKernel_t kernel, const Shape& shape, void** args) {
  if (kernel == nullptr) {
    const cudaError_t why = cudaPeekAtLastError();
    return why != cudaSuccess ? why : cudaErrorInvalidResourceHandle;
  }
  if (IsImpossible(shape.grid, shape.block)) return cudaErrorInvalidConfiguration;
  return LaunchKernel(d, kernel, shape, args);
}

static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

int LaunchConfigured(const Driver& d, const cudaLaunchConfig_t* config, const void* function,
                     void** args) {
  CUkernel kernel = nullptr;
  if (config == nullptr) return cudaErrorInvalidValue;
  if (int code = FindKernel(d, function, &kernel)) return code;
  if (IsImpossible(config->gridDim, config->blockDim)) return cudaErrorInvalidConfiguration;
  CUlaunchConfig driver_config = DriverConfig(*config);
  return d.cuLaunchKernelEx(&driver_config, AsFunction(kernel), args, nullptr);
}

}  // namespace

SIMGPU_CALL_TWINS(cudaLaunchKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream),
                  Launch(d, function, {grid, block, shared_bytes, stream}, args))
SIMGPU_CALL_TWINS(cudaLaunchCooperativeKernel, _ptsz,
                  (const void* function, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream),
                  LaunchCooperative(d, function, {grid, block, shared_bytes, stream}, args))
SIMGPU_CALL_TWINS(cudaLaunchKernelExC, _ptsz,
                  (const cudaLaunchConfig_t* config, const void* function, void** args),
                  LaunchConfigured(d, config, function, args))
SIMGPU_CALL_TWINS(__cudaLaunchKernel, _ptsz,
                  (cudaKernel_t kernel, dim3 grid, dim3 block, void** args, size_t shared_bytes,
                   cudaStream_t stream),
                  LaunchHandle(d, kernel, {grid, block, shared_bytes, stream}, args))
SIMGPU_CALL(__cudaGetKernel, (cudaKernel_t * kernel, const void* function),
            FindKernel(d, function, kernel))

SIMGPU_RUNTIME_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                        CUstream_st* stream) {
  if (pushed.count == kDeepest) {
    Record(cudaErrorMissingConfiguration);
    return 1;  // the stub is not called
  }
  pushed.shape[pushed.count++] = {grid, block, shared_bytes, stream};
  return 0;
}

SIMGPU_RUNTIME_API cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                          size_t* shared_bytes, void* stream) {
  if (pushed.count == 0) return Record(cudaErrorMissingConfiguration);
  const Shape& shape = pushed.shape[--pushed.count];
  *grid = shape.grid;
  *block = shape.block;
  *shared_bytes = shape.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = shape.stream;
  return cudaSuccess;
}

}  // namespace simgpu::runtime
