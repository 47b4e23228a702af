// Runs the blocks of a twin kernel on the calling thread. See launch.h.

#include <cstring>
#include <vector>

#include "simgpu/driver/fiber.h"
#include "simgpu/driver/launch.h"

namespace simgpu {
namespace {

// What dynamic shared memory holds when a block starts: a value that no correct kernel depends on.
constexpr unsigned char kSharedPoison = 0xa5;

struct BlockRun {
  const TwinLaunch* launch;
  void (*thread)(const TwinLaunch*, uint64_t, uint32_t);
  uint64_t block;
};

void RunFiber(void* argument, uint32_t thread) {
  const auto* run = static_cast<const BlockRun*>(argument);
  run->thread(run->launch, run->block, thread);
}

void FiberBarrier(void*) { Fibers::ForThisThread().Barrier(); }

void RunBlocks(void* argument) {
  auto* run = static_cast<TwinRun*>(argument);
  TwinLaunch& launch = run->launch;
  const TwinKernel& twin = *run->twin;
  const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  const auto refresh = [&launch] {
    if (launch.dynamic_shared_bytes != 0) {
      memset(launch.dynamic_shared, kSharedPoison, launch.dynamic_shared_bytes);
    }
  };
  if (twin.uses_barrier == 0) {
    const auto call = run->traced ? twin.run_traced : twin.run;
    if (launch.dynamic_shared_bytes == 0) {
      call(&launch, 0, blocks);
      return;
    }
    for (uint64_t block = 0; block < blocks; ++block) {
      refresh();
      call(&launch, block, block + 1);
    }
    return;
  }
  launch.barrier = FiberBarrier;
  Fibers& fibers = Fibers::ForThisThread();
  BlockRun one{&launch, run->traced ? twin.run_thread_traced : twin.run_thread, 0};
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  for (; one.block < blocks; ++one.block) {
    refresh();
    fibers.Run(threads, RunFiber, &one);
  }
}

}  // namespace

CUresult RunTwin(TwinRun* run) {
  static thread_local auto* shared = new std::vector<unsigned char>;
  if (run->launch.dynamic_shared_bytes != 0) {
    if (shared->size() < run->launch.dynamic_shared_bytes + 16) {
      shared->resize(run->launch.dynamic_shared_bytes + 16);
    }
    const uintptr_t start = reinterpret_cast<uintptr_t>(shared->data());
    run->launch.dynamic_shared = reinterpret_cast<void*>((start + 15) & ~uintptr_t{15});
  }
  return CallTrapped(RunBlocks, run, &run->fault) ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

}  // namespace simgpu
