// What chargpt does with a CUDA error: one sentence that names the call, the error and the bytes it
// asked for, then exit status 3.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_CHECK_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_CHECK_H_

#include <cuda_runtime_api.h>

#include <cstddef>

namespace chargpt {

constexpr int kExitBadInput = 2;
constexpr int kExitCudaError = 3;

[[noreturn]] void FailCuda(cudaError_t error, const char* call, size_t bytes);

inline void Check(cudaError_t error, const char* call, size_t bytes = 0) {
  if (error != cudaSuccess) FailCuda(error, call, bytes);
}

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_CHECK_H_
