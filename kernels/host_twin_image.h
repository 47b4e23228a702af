// Packs the kernels of a twin source into a host twin image (host_twin_abi.h) and, on request,
// registers it with the CUDA runtime the program links, the way nvcc's host code does. Included by
// host_twin.h only. A source lists its kernels once, in a macro that is given a macro:
//
//   #define NORM_KERNELS(KERNEL) KERNEL(NormForward, kNoBarrier, NormForwardCost)
//   TIDEMARK_TWIN_REGISTER(norm, NORM_KERNELS);
//
// TIDEMARK_TWIN_IMAGE(norm, NORM_KERNELS) only defines `const void* tidemark_twin_image_norm()`,
// for cuModuleLoadData in code without a runtime; it runs nothing before main. A cost is a function
// that takes the kernel's own parameters and returns TwinCost. Under nvcc the macros expand to
// nothing.

#ifndef TIDEMARK_KERNELS_HOST_TWIN_IMAGE_H_
#define TIDEMARK_KERNELS_HOST_TWIN_IMAGE_H_

// What a launch costs on a device: feeds a software GPU's virtual time.
struct TwinCost {
  double flops;
  double bytes;
};
#define TIDEMARK_TWIN_COST [[maybe_unused]] static TwinCost

#if defined(__CUDACC__)

#define TIDEMARK_TWIN_IMAGE(image, kernels) static_assert(true)
#define TIDEMARK_TWIN_REGISTER(image, kernels) static_assert(true)
#define TIDEMARK_TWIN_REGISTER_WITH(image, kernels, variables) static_assert(true)

#else

#include <stddef.h>
#include <stdlib.h>

#include <type_traits>
#include <utility>

#if defined(TIDEMARK_TWIN_TRACED)
#include "kernels/twin_trace.h"
#endif

namespace tidemark_twin {
namespace {

enum Sync { kNoBarrier, kBarrier };

template <typename T>
constexpr uint32_t ParamFlags() {
  if constexpr (!std::is_pointer_v<T>) return 0;
  using Pointee = std::remove_pointer_t<T>;
  uint32_t flags = kTwinParamPointer;
  if (std::is_const_v<Pointee>) flags |= kTwinParamConstPointee;
  return flags;
}

template <typename... P>
struct ParamTable {
  tm_twin_param entry[sizeof...(P) + 1] = {};

  constexpr ParamTable() {
    size_t index = 0;
    size_t end = 0;
    (Append<P>(&index, &end), ...);
  }

  template <typename T>
  constexpr void Append(size_t* index, size_t* end) {
    const size_t offset = (*end + alignof(T) - 1) / alignof(T) * alignof(T);
    entry[*index] = {static_cast<uint32_t>(offset), sizeof(T), ParamFlags<T>(), 0};
    *end = offset + sizeof(T);
    ++*index;
  }
};

inline uint3 Unflatten(uint64_t linear, const uint3& shape) {
  return {static_cast<unsigned>(linear % shape.x),
          static_cast<unsigned>(linear / shape.x % shape.y),
          static_cast<unsigned>(linear / shape.x / shape.y)};
}

inline void Enter(const tm_twin_launch* launch) {
  current_launch = launch;
  grid_shape = {launch->grid[0], launch->grid[1], launch->grid[2]};
  block_shape = {launch->block[0], launch->block[1], launch->block[2]};
}

template <auto kKernel>
struct Twin;

template <typename... P, void (*kKernel)(P...)>
struct Twin<kKernel> {
  static constexpr ParamTable<P...> kParams{};
  using Indices = std::index_sequence_for<P...>;

  // Every call below is inlined into these, the kernel too: one loop nest per kernel. The wide copy
  // computes the same bits: wider vectors, but no fused multiply-add.
  __attribute__((flatten)) static void RunBlocks(const tm_twin_launch* launch, uint64_t first,
                                                 uint64_t last) {
#if defined(TIDEMARK_TWIN_WIDE)
    if (__builtin_cpu_supports("avx2")) return RunBlocksWide(launch, first, last);
#endif
    Enter(launch);
    Blocks(launch, first, last, Indices());
  }
#if defined(TIDEMARK_TWIN_WIDE)
  __attribute__((flatten, noinline, target("avx2"))) static void RunBlocksWide(
      const tm_twin_launch* launch, uint64_t first, uint64_t last) {
    Enter(launch);
    Blocks(launch, first, last, Indices());
  }
#endif
  __attribute__((flatten)) static void RunThread(const tm_twin_launch* launch, uint64_t block,
                                                 uint32_t thread) {
    Enter(launch);
    block_index = Unflatten(block, grid_shape);
    thread_index = Unflatten(thread, block_shape);
    Thread(launch, Indices());
  }

  template <auto kCost>
  static void Cost(const tm_twin_launch* launch, double* flops, double* bytes) {
    const TwinCost cost = CallCost<kCost>(launch, Indices());
    *flops = cost.flops;
    *bytes = cost.bytes;
  }

 private:
  template <size_t... I>
  static void Blocks(const tm_twin_launch* launch, uint64_t first, uint64_t last,
                     std::index_sequence<I...>) {
    BlocksOf(first, last, *static_cast<P*>(launch->params[I])...);
  }
  template <size_t... I>
  static void Thread([[maybe_unused]] const tm_twin_launch* launch, std::index_sequence<I...>) {
    kKernel(*static_cast<P*>(launch->params[I])...);
  }
  template <auto kCost, size_t... I>
  static TwinCost CallCost([[maybe_unused]] const tm_twin_launch* launch,
                           std::index_sequence<I...>) {
    return kCost(*static_cast<P*>(launch->params[I])...);
  }

  // Parameters by value: the compiler need not read them again for each thread.
  static inline __attribute__((always_inline)) void BlocksOf(uint64_t first, uint64_t last,
                                                             P... p) {
    const uint3 shape = block_shape;
    for (uint64_t block = first; block < last; ++block) {
      block_index = Unflatten(block, grid_shape);
      for (unsigned z = 0; z < shape.z; ++z) {
        for (unsigned y = 0; y < shape.y; ++y) {
          for (unsigned x = 0; x < shape.x; ++x) {
            thread_index = {x, y, z};
            kKernel(p...);
          }
        }
      }
    }
  }
};

#if defined(TIDEMARK_TWIN_TRACED)
template <auto kKernel, Sync kSync>
void RunTraced(const tm_twin_launch* launch, uint64_t first, uint64_t last) {
  tidemark_twin_trace_begin(launch);
  if constexpr (kSync == kBarrier) {
    Twin<kKernel>::RunThread(launch, first, static_cast<uint32_t>(last));
  } else {
    Twin<kKernel>::RunBlocks(launch, first, last);
  }
  tidemark_twin_trace_end();
}
#else

using TracedRun = void(const tm_twin_launch*, uint64_t, uint64_t);

template <TracedRun* kTraced>
void RunThreadTraced(const tm_twin_launch* launch, uint64_t block, uint32_t thread) {
  kTraced(launch, block, thread);
}

template <auto kKernel, Sync kSync, auto kCost, TracedRun* kTraced>
constexpr tm_twin_kernel Describe(const char* name) {
  using T = Twin<kKernel>;
  tm_twin_kernel kernel = {};
  kernel.name = name;
  if constexpr (kSync == kBarrier) {
    kernel.run_thread = &T::RunThread;
    if constexpr (kTraced != nullptr) kernel.run_thread_traced = &RunThreadTraced<kTraced>;
  } else {
    kernel.run = &T::RunBlocks;
    kernel.run_traced = kTraced;
  }
  kernel.uses_barrier = kSync == kBarrier ? 1 : 0;
  kernel.param_count = sizeof(T::kParams.entry) / sizeof(tm_twin_param) - 1;
  kernel.params = T::kParams.entry;
  kernel.max_threads_per_block = 1024;
  if constexpr (!std::is_null_pointer_v<decltype(kCost)>) {
    kernel.cost = &T::template Cost<kCost>;
  }
  return kernel;
}

// What nvcc hands to __cudaRegisterFatBinary; the image pointer takes the fat binary's place.
struct FatBinaryWrapper {
  int magic = 0x466243b1;
  int version = 1;
  const void* data = nullptr;
  void* unused = nullptr;
};

#endif

}  // namespace
}  // namespace tidemark_twin

#if defined(TIDEMARK_TWIN_TRACED)

#define TIDEMARK_TWIN_DEFINE_TRACED_(function, sync, cost)                          \
  extern "C" __attribute__((visibility("hidden"))) void tidemark_traced_##function( \
      const tm_twin_launch* launch, uint64_t first, uint64_t last) {                \
    tidemark_twin::RunTraced<&function, tidemark_twin::sync>(launch, first, last);  \
  }
#define TIDEMARK_TWIN_IMAGE(image, kernels) \
  kernels(TIDEMARK_TWIN_DEFINE_TRACED_) static_assert(true)
#define TIDEMARK_TWIN_REGISTER(image, kernels) TIDEMARK_TWIN_IMAGE(image, kernels)
#define TIDEMARK_TWIN_REGISTER_WITH(image, kernels, variables) TIDEMARK_TWIN_IMAGE(image, kernels)

#else

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaUnregisterFatBinary(void** handle);
void __cudaRegisterFunction(void** handle, const char* host_function, char* device_function,
                            const char* device_name, int thread_limit, uint3* thread_index,
                            uint3* block_index, dim3* block_shape, dim3* grid_shape,
                            int* warp_size);
void __cudaRegisterVar(void** handle, char* shadow, char* device_name, const char* name,
                       int external, size_t bytes, int constant, int global);
}

#if defined(TIDEMARK_TWIN_HAS_TRACED)
#define TIDEMARK_TWIN_DECLARE_TRACED_(function, sync, cost)                         \
  extern "C" __attribute__((visibility("hidden"))) void tidemark_traced_##function( \
      const tm_twin_launch*, uint64_t, uint64_t);
#define TIDEMARK_TWIN_TRACED_(function) &tidemark_traced_##function
#else
#define TIDEMARK_TWIN_DECLARE_TRACED_(function, sync, cost)
#define TIDEMARK_TWIN_TRACED_(function) nullptr
#endif

#define TIDEMARK_TWIN_DESCRIBE_(function, sync, cost)                                             \
  tidemark_twin::Describe<&function, tidemark_twin::sync, cost, TIDEMARK_TWIN_TRACED_(function)>( \
      #function),
#define TIDEMARK_TWIN_HOST_FUNCTION_(function, sync, cost) reinterpret_cast<const char*>(&function),

#define TIDEMARK_TWIN_DESCRIBE_VARIABLE_(kind, type, name, ...)                                   \
  tm_twin_variable{#name, sizeof(type), &tidemark_twin_initial_##name.value, tidemark_twin::kind, \
                   0},
#define TIDEMARK_TWIN_SHADOW_(kind, type, name, ...) TIDEMARK_TWIN_SYMBOL(name),
#define TIDEMARK_TWIN_NO_VARIABLES_(VARIABLE)

// The variables' table ends with an empty entry, because C++ has no empty array.
#define TIDEMARK_TWIN_IMAGE_WITH_(image, kernels, variables)                                   \
  kernels(TIDEMARK_TWIN_DECLARE_TRACED_) static constexpr tm_twin_kernel                       \
      tidemark_twin_kernels_##image[] = {kernels(TIDEMARK_TWIN_DESCRIBE_)};                    \
  static constexpr tm_twin_variable tidemark_twin_variables_##image[] = {                      \
      variables(TIDEMARK_TWIN_DESCRIBE_VARIABLE_) tm_twin_variable{}};                         \
  static constexpr tm_twin_image tidemark_twin_data_##image = {                                \
      TIDEMARK_TWIN_MAGIC,                                                                     \
      TIDEMARK_TWIN_VERSION,                                                                   \
      sizeof(tidemark_twin_kernels_##image) / sizeof(tm_twin_kernel),                          \
      tidemark_twin_kernels_##image,                                                           \
      tidemark_twin_variables_##image,                                                         \
      sizeof(tidemark_twin_variables_##image) / sizeof(tm_twin_variable) - 1};                 \
  extern "C" __attribute__((visibility("hidden"))) const void* tidemark_twin_image_##image() { \
    return &tidemark_twin_data_##image;                                                        \
  }                                                                                            \
  static_assert(true)
#define TIDEMARK_TWIN_IMAGE(image, kernels) \
  TIDEMARK_TWIN_IMAGE_WITH_(image, kernels, TIDEMARK_TWIN_NO_VARIABLES_)

namespace tidemark_twin {
namespace {

// What nvcc's host code does before main, for the contents of one image.
inline void** Register(FatBinaryWrapper* wrapper, const tm_twin_image& image,
                       const char* const* functions, const void* const* shadows) {
  wrapper->data = &image;
  void** handle = __cudaRegisterFatBinary(wrapper);
  for (size_t i = 0; i < image.kernel_count; ++i) {
    const char* name = image.kernels[i].name;
    __cudaRegisterFunction(handle, functions[i], const_cast<char*>(name), name, -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
  }
  for (size_t i = 0; i < image.variable_count; ++i) {
    const tm_twin_variable& variable = image.variables[i];
    __cudaRegisterVar(handle, static_cast<char*>(const_cast<void*>(shadows[i])),
                      const_cast<char*>(variable.name), variable.name, 0, variable.bytes,
                      static_cast<int>(variable.constant), 0);
  }
  __cudaRegisterFatBinaryEnd(handle);
  return handle;
}

}  // namespace
}  // namespace tidemark_twin

// Registered before main, unregistered at exit.
#define TIDEMARK_TWIN_REGISTER_WITH(image, kernels, variables)                             \
  TIDEMARK_TWIN_IMAGE_WITH_(image, kernels, variables);                                    \
  static void** tidemark_twin_handle_##image;                                              \
  __attribute__((constructor)) static void tidemark_twin_register_##image() {              \
    static tidemark_twin::FatBinaryWrapper wrapper;                                        \
    const char* const functions[] = {kernels(TIDEMARK_TWIN_HOST_FUNCTION_)};               \
    const void* const shadows[] = {variables(TIDEMARK_TWIN_SHADOW_) nullptr};              \
    tidemark_twin_handle_##image =                                                         \
        tidemark_twin::Register(&wrapper, tidemark_twin_data_##image, functions, shadows); \
    atexit([] { __cudaUnregisterFatBinary(tidemark_twin_handle_##image); });               \
  }                                                                                        \
  static_assert(true)
#define TIDEMARK_TWIN_REGISTER(image, kernels) \
  TIDEMARK_TWIN_REGISTER_WITH(image, kernels, TIDEMARK_TWIN_NO_VARIABLES_)

#endif  // TIDEMARK_TWIN_TRACED
#endif  // __CUDACC__

#endif  // TIDEMARK_KERNELS_HOST_TWIN_IMAGE_H_
