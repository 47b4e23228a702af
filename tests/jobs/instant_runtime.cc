// A CUDA runtime for unit tests of a job's arithmetic: memory is host memory, every call is
// finished when it returns, kernels run as host twins. No streams, no limits, no checks: those are
// simgpu's.

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/host_twin_abi.h"
#include "tests/kernels/fibers.h"

namespace {

std::map<const void*, const tm_twin_kernel*>& Kernels() {
  static std::map<const void*, const tm_twin_kernel*> kernels;
  return kernels;
}

void Run(const tm_twin_kernel& kernel, tm_twin_launch* launch) {
  const uint64_t blocks = uint64_t{launch->grid[0]} * launch->grid[1] * launch->grid[2];
  if (!kernel.uses_barrier) {
    kernel.run(launch, 0, blocks);
    return;
  }
  for (uint64_t block = 0; block < blocks; ++block) {
    tidemark::kernels::Fibers().RunBlock(kernel.run_thread, *launch, block);
  }
}

cudaError_t Allocate(void** address, size_t bytes) {
  *address = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*address, 0xff, bytes);  // not-a-number: reading before writing shows
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  void* image;
  std::memcpy(&image, static_cast<char*>(wrapper) + 8, sizeof(image));
  return static_cast<void**>(image);
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  const auto* image = reinterpret_cast<const tm_twin_image*>(handle);
  for (uint32_t i = 0; i < image->kernel_count; ++i) {
    if (std::strcmp(image->kernels[i].name, name) == 0) Kernels()[host] = &image->kernels[i];
  }
}

cudaError_t cudaMalloc(void** address, size_t bytes) { return Allocate(address, bytes); }
cudaError_t cudaFree(void* address) {
  std::free(address);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** address, size_t bytes) { return Allocate(address, bytes); }
cudaError_t cudaFreeHost(void* address) { return cudaFree(address); }
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes, cudaStream_t) {
  std::memset(address, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** params,
                             size_t shared_bytes, cudaStream_t) {
  const auto found = Kernels().find(function);
  if (found == Kernels().end()) return cudaErrorInvalidDeviceFunction;
  std::vector<char> shared(shared_bytes);
  tm_twin_launch launch = {};
  const unsigned shape[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
  std::memcpy(launch.grid, shape, sizeof(launch.grid));
  std::memcpy(launch.block, shape + 3, sizeof(launch.block));
  launch.params = params;
  launch.dynamic_shared = shared.data();
  launch.dynamic_shared_bytes = static_cast<uint32_t>(shared_bytes);
  Run(*found->second, &launch);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = nullptr;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
  *milliseconds = 0;
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) { return "error of the instant runtime"; }

}  // extern "C"
