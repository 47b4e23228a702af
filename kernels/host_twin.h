// The CUDA device language for a host C++ compiler. A .cu source includes this file first; nvcc
// then sees plain CUDA, and a host compiler with TIDEMARK_HOST_TWIN=1 sees the same kernels as
// ordinary functions, which host_twin_image.h packs into a module image for a software GPU. It is
// not an emulator: memory, streams and scheduling belong to whoever runs the image.
//
// A twin source holds kernels, static functions and inline templates, nothing with external linkage
// but its kernels: it is compiled a second time with every load and store traced (twin_trace.h).
//
// Threads: indices and shared memory are thread_local, so one operating-system thread runs one
// launch at a time; the threads of a block with a barrier are fibers of one operating-system
// thread.

#ifndef TIDEMARK_KERNELS_HOST_TWIN_H_
#define TIDEMARK_KERNELS_HOST_TWIN_H_

#if defined(__CUDACC__)

// A kernel, under a name that cuModuleGetFunction finds unmangled.
#define TIDEMARK_KERNEL extern "C" __global__
// A free function called by kernels.
#define TIDEMARK_DEVICE static __device__ __forceinline__
// The block's dynamic shared memory as an array of `type`.
#define TIDEMARK_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

#elif defined(TIDEMARK_HOST_TWIN)

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <vector_types.h>

#include "kernels/host_twin_abi.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __restrict__
#undef __launch_bounds__
#define __device__
#define __host__
#define __constant__ const
#define __shared__ static thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict
#define __launch_bounds__(...)

#if defined(TIDEMARK_TWIN_TRACED)
// Internal linkage, so that the traced copy never meets the plain one.
#define __global__ static
#define TIDEMARK_KERNEL [[maybe_unused]] static
#else
#define __global__ __attribute__((visibility("hidden")))
#define TIDEMARK_KERNEL extern "C" __attribute__((visibility("hidden")))
#endif
#define TIDEMARK_DEVICE [[maybe_unused]] static inline __attribute__((always_inline))
#define TIDEMARK_DYNAMIC_SHARED(type, name) \
  type* name = static_cast<type*>(tidemark_twin::current_launch->dynamic_shared)

// One set of indices per translation unit: the compiler sees that nobody else can reach them.
namespace tidemark_twin {
namespace {
thread_local uint3 thread_index;
thread_local uint3 block_index;
thread_local uint3 block_shape;
thread_local uint3 grid_shape;
thread_local const tm_twin_launch* current_launch;

inline void Barrier() {
  const tm_twin_launch* launch = current_launch;
  const uint3 thread = thread_index;
  const uint3 block = block_index;
  launch->barrier(launch->barrier_context);
  current_launch = launch;
  thread_index = thread;
  block_index = block;
}
}  // namespace
}  // namespace tidemark_twin

#define threadIdx tidemark_twin::thread_index
#define blockIdx tidemark_twin::block_index
#define blockDim tidemark_twin::block_shape
#define gridDim tidemark_twin::grid_shape
#define __syncthreads() tidemark_twin::Barrier()
// Macros, because the C library has functions of its own under these names.
#define __expf expf
#define __logf logf
#define __syncwarp(...) static_cast<void>(0)
#define __threadfence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

template <typename T>
TIDEMARK_DEVICE T __ldg(const T* address) {
  return *address;
}
TIDEMARK_DEVICE float __fdividef(float x, float y) { return x / y; }
TIDEMARK_DEVICE float rsqrtf(float x) { return 1.0f / sqrtf(x); }
TIDEMARK_DEVICE float __fmul_rn(float x, float y) { return x * y; }
TIDEMARK_DEVICE float __fadd_rn(float x, float y) { return x + y; }

template <typename To, typename From>
TIDEMARK_DEVICE To TwinBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
TIDEMARK_DEVICE int __float_as_int(float x) { return TwinBits<int>(x); }
TIDEMARK_DEVICE float __int_as_float(int x) { return TwinBits<float>(x); }
TIDEMARK_DEVICE unsigned __float_as_uint(float x) { return TwinBits<unsigned>(x); }
TIDEMARK_DEVICE float __uint_as_float(unsigned x) { return TwinBits<float>(x); }

template <typename T>
TIDEMARK_DEVICE T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
TIDEMARK_DEVICE T max(T a, T b) {
  return a < b ? b : a;
}

// Read-modify-write of any 4- or 8-byte type by compare and exchange; returns the old value.
template <typename T, typename Change>
TIDEMARK_DEVICE T TwinAtomicUpdate(T* address, Change change) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  T old;
  __atomic_load(address, &old, __ATOMIC_RELAXED);
  for (;;) {
    T desired = change(old);
    if (__atomic_compare_exchange(address, &old, &desired, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED)) {
      return old;
    }
  }
}
template <typename T>
TIDEMARK_DEVICE T atomicAdd(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return static_cast<T>(old + value); });
}
template <typename T>
TIDEMARK_DEVICE T atomicSub(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return static_cast<T>(old - value); });
}
template <typename T>
TIDEMARK_DEVICE T atomicMax(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return old < value ? value : old; });
}
template <typename T>
TIDEMARK_DEVICE T atomicMin(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return value < old ? value : old; });
}
template <typename T>
TIDEMARK_DEVICE T atomicExch(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T) { return value; });
}
template <typename T>
TIDEMARK_DEVICE T atomicOr(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return static_cast<T>(old | value); });
}
template <typename T>
TIDEMARK_DEVICE T atomicAnd(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return static_cast<T>(old & value); });
}
template <typename T>
TIDEMARK_DEVICE T atomicXor(T* address, T value) {
  return TwinAtomicUpdate(address, [value](T old) { return static_cast<T>(old ^ value); });
}
template <typename T>
TIDEMARK_DEVICE T atomicCAS(T* address, T expected, T desired) {
  return TwinAtomicUpdate(address,
                          [expected, desired](T old) { return old == expected ? desired : old; });
}

#else
#error "a .cu source is compiled by nvcc, or by a host compiler with TIDEMARK_HOST_TWIN=1"
#endif

#include "kernels/host_twin_variable.h"
// After it: the image lists what the variables are.
#include "kernels/host_twin_image.h"

#endif  // TIDEMARK_KERNELS_HOST_TWIN_H_
