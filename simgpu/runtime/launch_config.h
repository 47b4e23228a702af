// The runtime's kernel and launch configuration in the driver's terms. Threads: stateless.

#ifndef SIMGPU_RUNTIME_LAUNCH_CONFIG_H_
#define SIMGPU_RUNTIME_LAUNCH_CONFIG_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace simgpu::runtime {

// The driver takes a kernel wherever it takes a function.
inline CUfunction AsFunction(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// `config`'s attributes are shared, not copied: they live as long as the caller's.
inline CUlaunchConfig DriverConfig(const cudaLaunchConfig_t& config) {
  CUlaunchConfig converted = {};
  converted.gridDimX = config.gridDim.x;
  converted.gridDimY = config.gridDim.y;
  converted.gridDimZ = config.gridDim.z;
  converted.blockDimX = config.blockDim.x;
  converted.blockDimY = config.blockDim.y;
  converted.blockDimZ = config.blockDim.z;
  converted.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  converted.hStream = config.stream;
  converted.attrs = reinterpret_cast<CUlaunchAttribute*>(config.attrs);
  converted.numAttrs = config.numAttrs;
  return converted;
}

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_LAUNCH_CONFIG_H_
