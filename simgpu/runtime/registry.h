// What nvcc's host code registers before main: images, kernels, variables. Registration only takes
// notes; an image is handed to the driver when the first of its kernels or variables is used.
//
// Threads: any. Lookups of kernels that were used before take no lock.

#ifndef SIMGPU_RUNTIME_REGISTRY_H_
#define SIMGPU_RUNTIME_REGISTRY_H_

#include <cuda_runtime_api.h>

#include "simgpu/runtime/driver_table.h"

namespace simgpu::runtime {

// The kernel behind `function`: a host stub's address that was registered, or a cudaKernel_t that
// the runtime gave out. Loads its image if needed. Returns a runtime error.
int FindKernel(const Driver& d, const void* function, CUkernel* kernel);

// The host stub that `kernel` was registered under, or the kernel itself.
const void* StubOf(CUkernel kernel);

// Lets `kernel`, found through a cudaLibrary_t, be used where a host stub may be.
void RememberKernel(CUkernel kernel);

// Address and size of the __device__ or __constant__ variable whose host shadow is `symbol`.
int FindSymbol(const Driver& d, const void* symbol, CUdeviceptr* address, size_t* bytes);

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_REGISTRY_H_
