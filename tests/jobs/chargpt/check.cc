#include "tests/jobs/chargpt/check.h"

#include <cstdio>
#include <cstdlib>

namespace chargpt {

void FailCuda(cudaError_t error, const char* call, size_t bytes) {
  std::fflush(stdout);
  if (bytes != 0) {
    std::fprintf(stderr, "chargpt: %s of %zu bytes failed: %s (error %d)\n", call, bytes,
                 cudaGetErrorString(error), static_cast<int>(error));
  } else {
    std::fprintf(stderr, "chargpt: %s failed: %s (error %d)\n", call, cudaGetErrorString(error),
                 static_cast<int>(error));
  }
  std::exit(kExitCudaError);
}

}  // namespace chargpt
