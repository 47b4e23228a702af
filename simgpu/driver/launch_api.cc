// Entry points of kernel launches.

#include <cuda.h>

#include "simgpu/driver/graph.h"
#include "simgpu/driver/launch.h"
#include "simgpu/driver/stream.h"

namespace simgpu {

CUresult LaunchKernel(const void* handle, const CUlaunchConfig& config, void** params,
                      void** extra) {
  Lock lock(DriverLock());
  CUstream stream = nullptr;
  if (const CUresult bad = Streams::Get().Resolve(config.hStream, &stream); bad != CUDA_SUCCESS) {
    return bad;
  }
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto launch = LaunchShapedAs(config);
  if (const CUresult bad = FillLaunch(function, params, extra, launch.get()); bad != CUDA_SUCCESS) {
    return bad;
  }
  if (stream->capture != nullptr) {
    NodeParams node;
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.context = stream->context;
    node.launch = launch;
    return CaptureNode(stream, std::move(node));
  }
  return Submit(config.hStream, MakeLaunchOperation(launch, stream->context->device));
}

CUresult LaunchWithConfig(const CUlaunchConfig* given, CUfunction function, void** params,
                          void** extra, CUstream default_stream) {
  if (given == nullptr || (given->numAttrs != 0 && given->attrs == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (unsigned i = 0; i < given->numAttrs; ++i) {
    const CUlaunchAttribute& attribute = given->attrs[i];
    // Clusters of one block are no clusters; larger ones need hardware that is not simulated.
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
        attribute.value.clusterDim.x * attribute.value.clusterDim.y * attribute.value.clusterDim.z >
            1) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  CUlaunchConfig config = *given;
  if (config.hStream == nullptr) config.hStream = default_stream;
  return LaunchKernel(function, config, params, extra);
}

CUresult LaunchPlain(CUfunction function, const unsigned (&shape)[6], unsigned shared,
                     CUstream stream, void** params, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = shape[0];
  config.gridDimY = shape[1];
  config.gridDimZ = shape[2];
  config.blockDimX = shape[3];
  config.blockDimY = shape[4];
  config.blockDimZ = shape[5];
  config.sharedMemBytes = shared;
  config.hStream = stream;
  return LaunchKernel(function, config, params, extra);
}

}  // namespace simgpu

SIMGPU_PTSZ(cuLaunchKernel, LaunchPlain,
            (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz, unsigned shared, CUstream stream, void** params, void** extra),
            (f, {gx, gy, gz, bx, by, bz}, shared, stream, params, extra))

// All blocks of a cooperative launch run one after the other here, so a barrier over the whole grid
// cannot work; kernels that use one have no twin.
SIMGPU_PTSZ(cuLaunchCooperativeKernel, LaunchPlain,
            (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
             unsigned bz, unsigned shared, CUstream stream, void** params),
            (f, {gx, gy, gz, bx, by, bz}, shared, stream, params, nullptr))

SIMGPU_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** params,
                                     void** extra) {
  SIMGPU_ENTER();
  return simgpu::LaunchWithConfig(config, f, params, extra, CU_STREAM_LEGACY);
}

SIMGPU_API CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** params,
                                          void** extra) {
  SIMGPU_ENTER();
  return simgpu::LaunchWithConfig(config, f, params, extra, CU_STREAM_PER_THREAD);
}
