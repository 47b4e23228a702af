// The binary format of host twin images, as this side of it reads them: a module image whose
// kernels were compiled for the host. The producers state the same layout on their own side; a test
// holds the two together. Nothing here is owned: an image lives as long as the object file that
// carries it.

#ifndef SIMGPU_DRIVER_TWIN_IMAGE_H_
#define SIMGPU_DRIVER_TWIN_IMAGE_H_

#include <cstdint>

namespace simgpu {

inline constexpr uint64_t kTwinMagic = UINT64_C(0x314e4957544d4954);  // "TIMTWIN1", little endian
inline constexpr uint32_t kTwinVersion = 2;

inline constexpr uint32_t kTwinPointer = 1;       // the parameter points to device memory
inline constexpr uint32_t kTwinConstPointee = 2;  // ... which the kernel only reads

struct TwinParam {
  uint32_t offset;
  uint32_t size;
  uint32_t flags;
  uint32_t reserved;
};

struct TwinLaunch {
  uint32_t grid[3];
  uint32_t block[3];
  void* const* params;
  void* dynamic_shared;
  uint32_t dynamic_shared_bytes;
  uint32_t reserved;
  void (*barrier)(void* context);
  void* barrier_context;
  void (*touch)(void* context, const void* address, uint64_t bytes, int write);
  void* touch_context;
  void* const* variables;
};

struct TwinKernel {
  const char* name;
  void (*run)(const TwinLaunch*, uint64_t first, uint64_t last);
  void (*run_traced)(const TwinLaunch*, uint64_t first, uint64_t last);
  void (*run_thread)(const TwinLaunch*, uint64_t block, uint32_t thread);
  void (*run_thread_traced)(const TwinLaunch*, uint64_t block, uint32_t thread);
  uint32_t uses_barrier;
  uint32_t param_count;
  const TwinParam* params;
  uint32_t static_shared_bytes;
  uint32_t max_threads_per_block;
  void (*cost)(const TwinLaunch*, double* flops, double* bytes);
};

struct TwinVariable {
  const char* name;
  uint64_t bytes;
  const void* initial;
  uint32_t constant;
  uint32_t reserved;
};

struct TwinImage {
  uint64_t magic;
  uint32_t version;
  uint32_t kernel_count;
  const TwinKernel* kernels;
  const TwinVariable* variables;
  uint64_t variable_count;
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_TWIN_IMAGE_H_
