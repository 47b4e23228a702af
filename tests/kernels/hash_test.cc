// The hash: the twin kernel against the plain host function, and the loading of its images by
// drivers that accept some of them.

#include "kernels/hash.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/host_twin_abi.h"

namespace tidemark::kernels {
namespace {

// A driver whose modules are twin images and whose launches run at once. `accepts` is the only
// image it takes; the rest is CUDA_ERROR_INVALID_IMAGE.
const void* accepts = nullptr;
int unloads = 0;

CUresult LoadData(CUmodule* module, const void* image) {
  if (image != accepts) return CUDA_ERROR_INVALID_IMAGE;
  *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  return CUDA_SUCCESS;
}
CUresult GetFunction(CUfunction* function, CUmodule module, const char* name) {
  const auto* image = reinterpret_cast<const tm_twin_image*>(module);
  if (image->magic != TIDEMARK_TWIN_MAGIC) return CUDA_ERROR_NOT_FOUND;
  for (uint32_t i = 0; i < image->kernel_count; ++i) {
    if (std::strcmp(image->kernels[i].name, name) != 0) continue;
    *function = reinterpret_cast<CUfunction>(const_cast<tm_twin_kernel*>(&image->kernels[i]));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}
CUresult Unload(CUmodule) {
  ++unloads;
  return CUDA_SUCCESS;
}
CUresult LaunchNow(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                   unsigned by, unsigned bz, unsigned, CUstream, void** params, void**) {
  tm_twin_launch launch = {};
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  std::copy(grid, grid + 3, launch.grid);
  std::copy(block, block + 3, launch.block);
  launch.params = params;
  reinterpret_cast<const tm_twin_kernel*>(function)->run(&launch, 0, uint64_t{gx} * gy * gz);
  return CUDA_SUCCESS;
}

Driver FakeDriver() {
  Driver driver;
  driver.cuModuleLoadData = &LoadData;
  driver.cuModuleGetFunction = &GetFunction;
  driver.cuModuleUnload = &Unload;
  driver.cuLaunchKernel = &LaunchNow;
  return driver;
}
const void* TwinImage() { return HashImage(HashImageCount() - 1); }
CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

class Hash : public ::testing::Test {
 protected:
  Hash() {
    accepts = TwinImage();
    EXPECT_EQ(LoadHash(driver_, &hash_), CUDA_SUCCESS);
  }
  uint64_t OnDevice(const void* data, size_t bytes, uint64_t position = 0) {
    alignas(8) uint64_t sum = 0;
    const HashRange range = {Address(data), bytes, position};
    EXPECT_EQ(LaunchHash(driver_, hash_, range, Address(&sum), nullptr), CUDA_SUCCESS);
    return sum;
  }

  Driver driver_ = FakeDriver();
  HashModule hash_;
};

TEST_F(Hash, DeviceAndHostAgreeForEveryLength) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> words(40000);
  for (uint64_t& word : words) word = random();
  for (size_t bytes = 0; bytes < 70; ++bytes) {
    EXPECT_EQ(OnDevice(words.data(), bytes), HashBytes(words.data(), bytes)) << bytes;
  }
  for (size_t bytes : {65535, 65536, 65537, 65544, 131072, 131075, 320000}) {
    EXPECT_EQ(OnDevice(words.data(), bytes), HashBytes(words.data(), bytes)) << bytes;
  }
}

TEST_F(Hash, PartsAddUpToTheWhole) {
  std::vector<uint64_t> words(1000);
  for (size_t i = 0; i < words.size(); ++i) words[i] = i * i;
  const size_t bytes = words.size() * 8 - 3;
  const uint64_t whole = OnDevice(words.data(), bytes);
  for (size_t cut : {8, 64, 4096, 7992}) {
    const uint64_t parts =
        OnDevice(words.data(), cut) + OnDevice(words.data() + cut / 8, bytes - cut, cut);
    EXPECT_EQ(parts, whole) << cut;
  }
}

TEST_F(Hash, SeesEveryChangedBitAndEverySwap) {
  std::vector<uint64_t> words(64);
  const uint64_t zero = OnDevice(words.data(), 512);
  EXPECT_NE(zero, OnDevice(words.data(), 504));
  for (int bit = 0; bit < 4096; ++bit) {
    words[bit / 64] ^= uint64_t{1} << bit % 64;
    EXPECT_NE(OnDevice(words.data(), 512), zero) << bit;
    words[bit / 64] = 0;
  }
  words[3] = 5;
  const uint64_t before = OnDevice(words.data(), 512);
  std::swap(words[3], words[4]);
  EXPECT_NE(OnDevice(words.data(), 512), before);
}

TEST_F(Hash, TwinReportsWhatItReadsAndWrites) {
  const auto* image = static_cast<const tm_twin_image*>(TwinImage());
  std::vector<uint64_t> words(20000);
  alignas(8) uint64_t sum = 0;
  const void* data = words.data();
  unsigned long long bytes = 160000, index = 0;
  void* result = &sum;
  void* params[] = {&data, &bytes, &index, &result};
  struct Seen {
    const void* address;
    uint64_t bytes;
    int write;
  };
  std::vector<Seen> seen;
  tm_twin_launch launch = {};
  launch.grid[0] = 3;
  launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
  launch.block[0] = 256;
  launch.params = params;
  launch.touch_context = &seen;
  launch.touch = [](void* context, const void* address, uint64_t bytes, int write) {
    static_cast<std::vector<Seen>*>(context)->push_back({address, bytes, write});
  };
  image->kernels[0].run_traced(&launch, 0, 3);
  EXPECT_EQ(sum, HashBytes(words.data(), 160000));
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].address, words.data());
  EXPECT_EQ(seen[0].bytes, 160000u);
  EXPECT_EQ(seen[0].write, 0);
  EXPECT_EQ(seen[1].address, &sum);
  EXPECT_EQ(seen[1].write, 1);
}

TEST_F(Hash, MisalignedRangeIsRefused) {
  alignas(8) uint64_t data[4] = {};
  for (const HashRange& range :
       {HashRange{Address(data) + 4, 8, 0}, HashRange{Address(data), 8, 4}}) {
    EXPECT_EQ(LaunchHash(driver_, hash_, range, Address(data), nullptr), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST(HashImages, EveryImageIsTriedAndTheErrorKept) {
  const Driver driver = FakeDriver();
  HashModule hash;
  accepts = nullptr;
  EXPECT_EQ(LoadHash(driver, &hash), CUDA_ERROR_INVALID_IMAGE);
  EXPECT_EQ(hash.module, nullptr);
  accepts = TwinImage();
  unloads = 0;
  EXPECT_EQ(LoadHash(driver, &hash), CUDA_SUCCESS);
  EXPECT_NE(hash.function, nullptr);
  EXPECT_EQ(UnloadHash(driver, &hash), CUDA_SUCCESS);
  EXPECT_EQ(unloads, 1);
  EXPECT_EQ(hash.function, nullptr);
}

TEST(HashImages, DeviceCodeComesFirstWhereNvccBuiltIt) {
  if (HashImageCount() == 1) GTEST_SKIP() << "needs a build with nvcc";
  const uint32_t fat_binary_magic = 0xba55ed50;
  EXPECT_EQ(std::memcmp(HashImage(0), &fat_binary_magic, 4), 0);
}

}  // namespace
}  // namespace tidemark::kernels
