// A launch by name that every compiler accepts: Launch(Kernel, {grid, block}, args...), checked
// against the kernel's own parameters. It is the public runtime call and nothing more, so it works
// for nvcc's kernels and for host twins alike.

#ifndef TIDEMARK_KERNELS_LAUNCH_H_
#define TIDEMARK_KERNELS_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

namespace tidemark::kernels {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  cudaStream_t stream = nullptr;
  size_t shared_bytes = 0;
};

template <typename... Params>
cudaError_t Launch(void (*kernel)(Params...), const LaunchShape& shape,
                   std::type_identity_t<Params>... args) {
  // One slot more than parameters: an array of none is not C++.
  void* params[sizeof...(Params) + 1] = {
      const_cast<void*>(static_cast<const void*>(std::addressof(args)))...};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), shape.grid, shape.block, params,
                          shape.shared_bytes, shape.stream);
}

}  // namespace tidemark::kernels

#endif  // TIDEMARK_KERNELS_LAUNCH_H_
