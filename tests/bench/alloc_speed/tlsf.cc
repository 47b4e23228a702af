// A two-level segregated fit: the virtual block of the Vulkan Memory Allocator, whose metadata is
// one. It hands out offsets and needs no device. It forgets streams; a lock makes it shared.

#include <mutex>

#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#define VMA_STATS_STRING_ENABLED 0
#include <vk_mem_alloc.h>

#include "tests/bench/alloc_speed/contender.h"

namespace tidemark::bench {
namespace {

class Tlsf : public Contender {
 public:
  Tlsf(bool shared, size_t capacity) : shared_(shared) {
    VmaVirtualBlockCreateInfo info = {};
    info.size = capacity;
    if (vmaCreateVirtualBlock(&info, &block_) != VK_SUCCESS) block_ = nullptr;
  }
  ~Tlsf() override {
    if (block_ == nullptr) return;
    vmaClearVirtualBlock(block_);
    vmaDestroyVirtualBlock(block_);
  }
  void* Allocate(size_t bytes, uint32_t) override {
    VmaVirtualAllocationCreateInfo info = {};
    info.size = bytes;
    info.alignment = 512;
    VmaVirtualAllocation allocation = nullptr;
    const std::unique_lock<std::mutex> lock = Lock();
    return vmaVirtualAllocate(block_, &info, &allocation, nullptr) == VK_SUCCESS ? allocation
                                                                                 : nullptr;
  }
  void Free(void* address, size_t, uint32_t) override {
    const std::unique_lock<std::mutex> lock = Lock();
    vmaVirtualFree(block_, static_cast<VmaVirtualAllocation>(address));
  }

 private:
  std::unique_lock<std::mutex> Lock() {
    return shared_ ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  bool shared_;
  VmaVirtualBlock block_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Contender> MakeTlsf(bool shared, size_t capacity) {
  return std::make_unique<Tlsf>(shared, capacity);
}

}  // namespace tidemark::bench
