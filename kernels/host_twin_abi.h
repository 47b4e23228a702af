// The binary format of a host twin image: what a module image holds when its kernels were compiled
// for the host instead of a GPU. A software GPU (simgpu/) runs such images; a real driver refuses
// them as CUDA_ERROR_INVALID_IMAGE. It is a file format, stated a second time by its other side in
// simgpu/driver/twin_image.h; tests/simgpu/twin_abi_test.cc holds the two together.
//
// Plain C structs, fixed layout, no ownership: everything lives as long as the object file that
// carries it. Threads: `run` and `run_thread` may be called from any thread, one launch at a time
// per thread.

#ifndef TIDEMARK_KERNELS_HOST_TWIN_ABI_H_
#define TIDEMARK_KERNELS_HOST_TWIN_ABI_H_

#include <stdint.h>

#define TIDEMARK_TWIN_MAGIC UINT64_C(0x314e4957544d4954)  // "TIMTWIN1", little endian
#define TIDEMARK_TWIN_VERSION 2u

enum {
  kTwinParamPointer = 1u,       // the parameter is a pointer to device memory
  kTwinParamConstPointee = 2u,  // ... that the kernel only reads
};

struct tm_twin_param {
  uint32_t offset;  // bytes from the start of the parameter block, as cuFuncGetParamInfo tells
  uint32_t size;    // bytes
  uint32_t flags;   // kTwinParam*
  uint32_t reserved;
};

// One launch, as the device hands it to the twin. `params[i]` points to the i-th parameter's value.
struct tm_twin_launch {
  uint32_t grid[3];
  uint32_t block[3];
  void* const* params;
  void* dynamic_shared;  // dynamic_shared_bytes bytes, fresh for each block
  uint32_t dynamic_shared_bytes;
  uint32_t reserved;
  // Called by __syncthreads() of kernels with a barrier; returns once all threads of the block
  // came.
  void (*barrier)(void* context);
  void* barrier_context;
  // Called by traced twins for each run of bytes touched; write is 0 or 1. Null when not tracing.
  void (*touch)(void* context, const void* address, uint64_t bytes, int write);
  void* touch_context;
  // Where the image's variables live for this launch, in the order of the image's table.
  void* const* variables;
};

struct tm_twin_kernel {
  const char* name;  // as cuModuleGetFunction and __cudaRegisterFunction name it
  // Without barrier: runs blocks [first, last) of the grid in linear order (x fastest), all
  // threads.
  void (*run)(const struct tm_twin_launch*, uint64_t first, uint64_t last);
  void (*run_traced)(const struct tm_twin_launch*, uint64_t first, uint64_t last);  // may be null
  // With barrier: runs one thread; the device runs block[0]*block[1]*block[2] of them as fibers of
  // one operating-system thread, so that `static thread_local` serves as shared memory.
  void (*run_thread)(const struct tm_twin_launch*, uint64_t block, uint32_t thread);
  void (*run_thread_traced)(const struct tm_twin_launch*, uint64_t block, uint32_t thread);
  uint32_t uses_barrier;  // 0: only run is set; 1: only run_thread is set
  uint32_t param_count;
  const struct tm_twin_param* params;
  uint32_t static_shared_bytes;
  uint32_t max_threads_per_block;
  // Modelled cost of the launch, for virtual time: floating-point operations and bytes moved to and
  // from device memory. Null: the device estimates from the launch's size.
  void (*cost)(const struct tm_twin_launch*, double* flops, double* bytes);
};

// A __device__ or __constant__ variable. The device keeps an instance for each loaded module.
struct tm_twin_variable {
  const char* name;  // as cuModuleGetGlobal names it
  uint64_t bytes;
  const void* initial;  // `bytes` bytes
  uint32_t constant;    // 1: kernels do not write it
  uint32_t reserved;
};

struct tm_twin_image {
  uint64_t magic;
  uint32_t version;
  uint32_t kernel_count;
  const struct tm_twin_kernel* kernels;
  const struct tm_twin_variable* variables;
  uint64_t variable_count;
};

#endif  // TIDEMARK_KERNELS_HOST_TWIN_ABI_H_
