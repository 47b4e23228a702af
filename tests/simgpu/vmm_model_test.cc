// Random operations of plain and virtual memory management against a naive model: which handles
// live, what is mapped where, what every byte reads, and how much of the device is free.

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/simgpu/device.h"
#include "tests/simgpu/node_folder.h"

namespace simgpu_tests {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kChunk = 2 * kMiB;
constexpr size_t kSlots = 12;
constexpr size_t kDeviceChunks = 8;
constexpr int kSteps = 400;

struct ModelMemory {
  bool held = true;  // its handle is not released
  int mappings = 0;
  uint32_t word = 0;  // what its first word reads
};

class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {
    EXPECT_CUDA(cuMemAddressReserve(&base_, kSlots * kChunk, 0, 0, 0));
  }

  void Step() {
    switch (Pick(6)) {
      case 0:
        return Create();
      case 1:
        return Release();
      case 2:
        return Map();
      case 3:
        return Unmap();
      case 4:
        return Write();
      default:
        return Plain();
    }
  }

  // Everything that the driver answers agrees with the model.
  void Walk() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_CUDA(cuMemGetInfo(&free, &total));
    EXPECT_IN_CHILD(free == (kDeviceChunks - UsedChunks()) * kChunk);
    for (const auto& [slot, memory] : mapped_) {
      uint32_t word = 1;
      EXPECT_CUDA(cuMemcpyDtoH(&word, At(slot), 4));
      EXPECT_IN_CHILD(word == memory->word);
    }
  }

 private:
  using Handle = CUmemGenericAllocationHandle;
  // Owners: the table of handles and each mapping.
  using Memory = std::shared_ptr<ModelMemory>;

  size_t Pick(size_t count) { return random_() % count; }
  CUdeviceptr At(size_t slot) const { return base_ + slot * kChunk; }

  size_t UsedChunks() const {
    size_t used = plain_.size();
    for (const auto& [handle, memory] : memories_) {
      if (memory->held || memory->mappings > 0) ++used;
    }
    return used;
  }

  void Create() {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const bool fits = UsedChunks() < kDeviceChunks;
    Handle handle = 0;
    EXPECT_CODE(fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY,
                cuMemCreate(&handle, kChunk, &prop, 0));
    if (!fits) return;
    EXPECT_IN_CHILD(memories_.count(handle) == 0);
    memories_[handle] = std::make_shared<ModelMemory>();
  }

  // Any handle that ever was: releasing one twice has to fail.
  void Release() {
    if (memories_.empty()) return;
    auto chosen = std::next(memories_.begin(), static_cast<long>(Pick(memories_.size())));
    EXPECT_CODE(chosen->second->held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
                cuMemRelease(chosen->first));
    chosen->second->held = false;
  }

  void Map() {
    if (memories_.empty()) return;
    auto chosen = std::next(memories_.begin(), static_cast<long>(Pick(memories_.size())));
    const size_t slot = Pick(kSlots);
    const bool valid = chosen->second->held && mapped_.count(slot) == 0;
    EXPECT_CODE(valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
                cuMemMap(At(slot), kChunk, 0, chosen->first, 0));
    if (!valid) return;
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_CUDA(cuMemSetAccess(At(slot), kChunk, &access, 1));
    mapped_[slot] = chosen->second;
    ++chosen->second->mappings;
  }

  void Unmap() {
    const size_t slot = Pick(kSlots);
    auto found = mapped_.find(slot);
    EXPECT_CODE(found != mapped_.end() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE,
                cuMemUnmap(At(slot), kChunk));
    if (found == mapped_.end()) return;
    --found->second->mappings;
    mapped_.erase(found);
  }

  void Write() {
    if (mapped_.empty()) return;
    auto chosen = std::next(mapped_.begin(), static_cast<long>(Pick(mapped_.size())));
    const uint32_t word = random_();
    EXPECT_CUDA(cuMemsetD32(At(chosen->first), word, 1));
    EXPECT_CUDA(cuCtxSynchronize());
    chosen->second->word = word;
  }

  void Plain() {
    if (!plain_.empty() && Pick(2) == 0) {
      EXPECT_CUDA(cuMemFree(plain_.back()));
      EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuMemFree(plain_.back()));
      plain_.pop_back();
      return;
    }
    const bool fits = UsedChunks() < kDeviceChunks;
    CUdeviceptr data = 0;
    EXPECT_CODE(fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, kChunk));
    if (fits) plain_.push_back(data);
  }

  std::mt19937 random_;
  CUdeviceptr base_ = 0;
  std::map<Handle, Memory> memories_;
  std::map<size_t, Memory> mapped_;
  std::vector<CUdeviceptr> plain_;
};

void RunSeeds(const std::string& more) {
  char name[] = "/dev/shm/simgpu-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    InChild("memory=16MiB,directory=" + folder + more, [seed] {
      Model model(seed);
      for (int step = 0; step < kSteps; ++step) {
        model.Step();
        model.Walk();
      }
    });
  }
  RemoveNodeFolder(folder);
}

TEST(VmmModel, AgreesWithTheDriver) { RunSeeds(""); }
TEST(VmmModel, AgreesUnderTheGuard) { RunSeeds(",guard=mprotect"); }

}  // namespace
}  // namespace simgpu_tests
