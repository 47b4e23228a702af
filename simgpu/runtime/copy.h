// Copies as the runtime describes them, turned into the driver's descriptions. Pure; any thread.

#ifndef SIMGPU_RUNTIME_COPY_H_
#define SIMGPU_RUNTIME_COPY_H_

#include <cuda_runtime_api.h>

#include "simgpu/runtime/driver_table.h"

namespace simgpu::runtime {

inline bool IsCopyKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

// Where the two ends of a copy lie. The driver finds out by itself where the runtime does not say.
struct Ends {
  CUmemorytype source;
  CUmemorytype target;
};
Ends EndsOf(cudaMemcpyKind kind);

// Fills `*out`; returns a runtime error for what the runtime refuses by itself.
int DescribeCopy(const cudaMemcpy3DParms* in, CUDA_MEMCPY3D* out);
int DescribeCopy(const cudaMemcpy3DPeerParms* in, CUDA_MEMCPY3D_PEER* out);
// The reverse, for graph nodes.
void DescribeCopy(const CUDA_MEMCPY3D& in, cudaMemcpy3DParms* out);

// A plain run of bytes in the same terms.
int DescribeRun(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                CUDA_MEMCPY3D* out);

// One run of bytes, waited for or queued; `d` decides what stream 0 means.
int CopyRun(const Driver& d, void* target, const void* source, size_t bytes, cudaMemcpyKind kind);
int CopyRunAsync(const Driver& d, void* target, const void* source, size_t bytes,
                 cudaMemcpyKind kind, cudaStream_t stream);

}  // namespace simgpu::runtime

#endif  // SIMGPU_RUNTIME_COPY_H_
