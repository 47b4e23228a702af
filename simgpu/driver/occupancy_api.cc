// Occupancy answers: arithmetic on one multiprocessor of 2048 threads, 32 blocks and 228 KiB of
// shared memory, as on devices of compute capability 9.0.

#include <cuda.h>

#include <algorithm>

#include "simgpu/driver/module.h"
#include "simgpu/driver/stream.h"

namespace simgpu {
namespace {

constexpr int kThreads = 2048;
constexpr int kBlocks = 32;
constexpr int kMultiprocessors = 132;
constexpr size_t kSharedBytes = 228 * 1024;
constexpr size_t kReservedPerBlock = 1024;

int BlocksPerMultiprocessor(const Kernel& kernel, int block, size_t dynamic_shared) {
  const int warps = (block + 31) / 32;
  if (block <= 0 || block > kernel.max_threads) return 0;
  const size_t shared =
      static_cast<size_t>(kernel.static_shared_bytes) + dynamic_shared + kReservedPerBlock;
  const int by_shared = static_cast<int>(kSharedBytes / shared);
  return std::min({kBlocks, kThreads / (warps * 32), by_shared});
}

CUresult MaxActive(int* blocks, const void* handle, int block, size_t shared) {
  Lock lock(DriverLock());
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (blocks == nullptr || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = BlocksPerMultiprocessor(*function->kernel, block, shared);
  return CUDA_SUCCESS;
}

struct Wish {
  CUoccupancyB2DSize shared_of;  // bytes of dynamic shared memory for a block size; may be null
  size_t shared;
  int limit;  // 0: none
};

CUresult PotentialBlock(int* grid, int* block, const void* handle, const Wish& wish) {
  CUcontext context = nullptr;
  if (const CUresult bad = RequireContext(&context); bad != CUDA_SUCCESS) return bad;
  const CUfunction function = FunctionOf(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int limit = function->kernel->max_threads;
  if (wish.limit > 0) limit = std::min(limit, wish.limit);
  int best_threads = 0;
  // From large to small: among equals CUDA suggests the largest block.
  for (int size = (limit + 31) / 32 * 32; size >= 32; size -= 32) {
    const int threads = std::min(size, limit);
    const size_t shared = wish.shared_of != nullptr ? wish.shared_of(threads) : wish.shared;
    const int blocks = BlocksPerMultiprocessor(*function->kernel, threads, shared);
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block = threads;
    *grid = blocks * kMultiprocessors;
  }
  return best_threads > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace simgpu

SIMGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction f,
                                                                int block, size_t shared) {
  SIMGPU_ENTER();
  return simgpu::MaxActive(blocks, f, block, shared);
}

SIMGPU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction f,
                                                                         int block, size_t shared,
                                                                         unsigned flags) {
  SIMGPU_ENTER();
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::MaxActive(blocks, f, block, shared);
}

SIMGPU_API CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction f,
                                                     CUoccupancyB2DSize shared_of, size_t shared,
                                                     int limit) {
  SIMGPU_ENTER();
  return simgpu::PotentialBlock(grid, block, f, {shared_of, shared, limit});
}

SIMGPU_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction f,
                                                              CUoccupancyB2DSize shared_of,
                                                              size_t shared, int limit,
                                                              unsigned flags) {
  SIMGPU_ENTER();
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return simgpu::PotentialBlock(grid, block, f, {shared_of, shared, limit});
}

SIMGPU_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction f, int blocks,
                                                            int block) {
  SIMGPU_ENTER();
  const CUfunction function = simgpu::FunctionOf(f);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes == nullptr || blocks <= 0 || block <= 0) return CUDA_ERROR_INVALID_VALUE;
  const size_t share = simgpu::kSharedBytes / static_cast<size_t>(blocks);
  const size_t used =
      static_cast<size_t>(function->kernel->static_shared_bytes) + simgpu::kReservedPerBlock;
  *bytes = share > used ? share - used : 0;
  return CUDA_SUCCESS;
}
