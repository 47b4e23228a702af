// What a call costs the calling thread, in nanoseconds: the smallest mean of many short rounds, one
// line "name nanoseconds" each. An unmodified CUDA program: bench.py runs it bare and preloaded.

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "kernels/launch.h"

extern "C" void BenchTouch(const float* left, const float* right, float* out, int count);

namespace {

constexpr int kRounds = 10;
constexpr int kCallsPerRound = 20;

void Check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "call_cost: %s\n", cudaGetErrorString(error));
  exit(1);
}

void Measure(const char* name, const std::function<void()>& call) {
  double best = 1e18;
  for (int round = 0; round < kRounds; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCallsPerRound; ++i) call();
    std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count() / kCallsPerRound);
    Check(cudaDeviceSynchronize());
  }
  printf("%s %.0f\n", name, best);
}

void MeasurePair(const char* name, size_t bytes) {
  Measure(name, [bytes] {
    void* address = nullptr;
    Check(cudaMalloc(&address, bytes));
    Check(cudaFree(address));
  });
}

}  // namespace

int main() {
  constexpr int kCount = 32;
  float* buffers[3] = {};
  for (float*& buffer : buffers) {
    Check(cudaMalloc(reinterpret_cast<void**>(&buffer), 4 << 20));
  }
  Check(cudaMemset(buffers[0], 0, 4 << 20));
  Check(cudaMemset(buffers[1], 0, 4 << 20));
  MeasurePair("allocate+free_4KiB", 4 << 10);
  MeasurePair("allocate+free_256KiB", 256 << 10);
  Measure("allocate+free_async_4KiB", [] {
    void* address = nullptr;
    Check(cudaMallocAsync(&address, 4 << 10, nullptr));
    Check(cudaFreeAsync(address, nullptr));
  });
  Measure("launch_3_buffers", [&] {
    Check(tidemark::kernels::Launch(BenchTouch, {1, kCount}, buffers[0], buffers[1], buffers[2],
                                    kCount));
  });
  Measure("memset_async_128B", [&] { Check(cudaMemsetAsync(buffers[2], 0, 128, nullptr)); });
  Measure("memory_info", [] {
    size_t free_bytes = 0, total_bytes = 0;
    Check(cudaMemGetInfo(&free_bytes, &total_bytes));
  });
  return 0;
}
