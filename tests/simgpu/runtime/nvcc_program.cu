// A plain CUDA program as nvcc 13 compiles it against the shared runtime: registers at start-up,
// allocates, copies, launches with <<<>>>. One of its kernels has a host twin linked beside it
// under its mangled name (nvcc_program_twin.cc), the other has none and holds GPU code only. Exits
// with the number of steps that did not end as expected.

#include <cuda_runtime.h>

#include <cstdio>

__global__ void AddOne(unsigned* data, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) data[i] += 1;
}

__global__ void NobodyKnows(double* data, short scale) { data[0] *= scale; }

namespace {

int failures = 0;

void Expect(const char* what, cudaError_t error, cudaError_t wanted = cudaSuccess) {
  std::printf("%s: %s\n", what, cudaGetErrorName(error));
  if (error != wanted) ++failures;
}

}  // namespace

int main() {
  unsigned* data = nullptr;
  unsigned words[100] = {};
  cudaFuncAttributes attributes = {};
  Expect("malloc", cudaMalloc(&data, sizeof(words)));
  Expect("copy", cudaMemcpy(data, words, sizeof(words), cudaMemcpyHostToDevice));
  AddOne<<<1, 128>>>(data, 100);
  Expect("launch", cudaGetLastError());
  AddOne<<<1, 128, 0, cudaStreamPerThread>>>(data, 100);
  Expect("launch on the thread's stream", cudaGetLastError());
  Expect("attributes", cudaFuncGetAttributes(&attributes, AddOne));
  Expect("synchronize", cudaDeviceSynchronize());
  Expect("copy back", cudaMemcpy(words, data, sizeof(words), cudaMemcpyDeviceToHost));
  for (unsigned word : words) failures += word != 2;
  NobodyKnows<<<1, 1>>>(reinterpret_cast<double*>(data), 3);
  Expect("launch of GPU code", cudaGetLastError(), cudaErrorInvalidDeviceFunction);
  Expect("free", cudaFree(data));
  return failures;
}
