// RMM's pool and arena resources over an upstream that hands out addresses, and a CUDA runtime that
// does nothing: its events cost no more than a call, so the figures are RMM's own work. Both
// resources lock for themselves.

#include <cuda_runtime_api.h>

#include <rmm/cuda_stream_view.hpp>
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/device_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#include "tests/bench/alloc_speed/contender.h"

extern "C" {
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  static char events[1 << 16];
  static int next = 0;
  *event = reinterpret_cast<cudaEvent_t>(&events[next++ % (1 << 16)]);
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "none"; }
const char* cudaGetErrorString(cudaError_t) { return "none"; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *free_bytes = *total_bytes = size_t{1} << 40;
  return cudaSuccess;
}
}

namespace tidemark::bench {
namespace {

class Simulated : public rmm::mr::device_memory_resource {
 public:
  explicit Simulated(size_t capacity) : end_(kBase + capacity) {}

 private:
  static constexpr uintptr_t kBase = uintptr_t{1} << 40;
  void* do_allocate(size_t bytes, rmm::cuda_stream_view) override {
    if (bytes > end_ - next_) throw rmm::out_of_memory("the pretended device is full");
    const uintptr_t address = next_;
    next_ += (bytes + 255) / 256 * 256;
    return reinterpret_cast<void*>(address);
  }
  void do_deallocate(void*, size_t, rmm::cuda_stream_view) override {}
  uintptr_t next_ = kBase;
  uintptr_t end_;
};

using Pool = rmm::mr::pool_memory_resource<Simulated>;
using Arena = rmm::mr::arena_memory_resource<Simulated>;

template <typename Resource>
class Rmm : public Contender {
 public:
  template <typename... Arguments>
  explicit Rmm(size_t capacity, Arguments... arguments)
      : upstream_(capacity), resource_(&upstream_, arguments...) {}
  void* Allocate(size_t bytes, uint32_t stream) override {
    return resource_.allocate(bytes, Stream(stream));
  }
  void Free(void* address, size_t bytes, uint32_t stream) override {
    resource_.deallocate(address, bytes, Stream(stream));
  }

 private:
  static rmm::cuda_stream_view Stream(uint32_t stream) {
    static char handles[kMostStreams];
    return rmm::cuda_stream_view(reinterpret_cast<cudaStream_t>(&handles[stream % kMostStreams]));
  }
  Simulated upstream_;
  Resource resource_;
};

}  // namespace

// One block for everything from the start: the pool never has to grow.
std::unique_ptr<Contender> MakeRmmPool(bool, size_t capacity) {
  return std::make_unique<Rmm<Pool>>(2 * capacity, capacity, capacity);
}
std::unique_ptr<Contender> MakeRmmArena(bool, size_t capacity) {
  return std::make_unique<Rmm<Arena>>(2 * capacity, std::optional<size_t>(capacity));
}

}  // namespace tidemark::bench
