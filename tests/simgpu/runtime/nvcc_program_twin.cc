// A host twin of nvcc_program.cu's AddOne under its mangled name, written by hand and registered as
// an image of its own, as host_twin_image.h would.

#include <stdlib.h>

#include "kernels/host_twin_abi.h"

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
}

namespace {

void AddOne(const tm_twin_launch* launch, uint64_t first, uint64_t last) {
  auto* data = *static_cast<unsigned**>(launch->params[0]);
  const int count = *static_cast<int*>(launch->params[1]);
  const uint64_t width = launch->block[0];
  for (uint64_t i = first * width; i < last * width; ++i) {
    if (i < static_cast<uint64_t>(count)) data[i] += 1;
  }
}

constexpr tm_twin_param kParams[] = {{0, 8, kTwinParamPointer, 0}, {8, 4, 0, 0}};

tm_twin_kernel kernel;
tm_twin_image image = {TIDEMARK_TWIN_MAGIC, TIDEMARK_TWIN_VERSION, 1, &kernel, nullptr, 0};

struct Wrapper {
  int magic = 0x466243b1;
  int version = 1;
  const void* data = &image;
  void* unused = nullptr;
} wrapper;

void** handle = nullptr;

__attribute__((constructor)) void Register() {
  kernel.name = "_Z6AddOnePji";
  kernel.run = AddOne;
  kernel.param_count = 2;
  kernel.params = kParams;
  kernel.max_threads_per_block = 1024;
  handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFatBinaryEnd(handle);
  atexit([] { __cudaUnregisterFatBinary(handle); });
}

}  // namespace
