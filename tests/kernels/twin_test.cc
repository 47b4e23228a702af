// Host twins: layout, execution, tracing and registration, through the image format alone. The
// runtime entry points that registration calls are stand-ins here that record what they were given.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/host_twin_abi.h"
#include "tests/kernels/fibers.h"
#include "tests/kernels/twin_sample.h"

namespace {

struct Recorded {
  const void* image = nullptr;
  int magic = 0;
  bool ended = false;
  std::map<std::string, const void*> functions;
};
Recorded& TheRecord() {
  static Recorded recorded;
  return recorded;
}

}  // namespace

extern "C" {
void** __cudaRegisterFatBinary(void* wrapper) {
  std::memcpy(&TheRecord().magic, wrapper, sizeof(int));
  std::memcpy(&TheRecord().image, static_cast<char*>(wrapper) + 8, sizeof(void*));
  return reinterpret_cast<void**>(&TheRecord());
}
void __cudaRegisterFatBinaryEnd(void**) { TheRecord().ended = true; }
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*,
                            void*, void*, int*) {
  TheRecord().functions[name] = host;
}
}

namespace {

using tidemark::kernels::Fibers;

const tm_twin_image& Image() {
  return *static_cast<const tm_twin_image*>(tidemark_twin_image_sample());
}

const tm_twin_kernel& Kernel(const std::string& name) {
  for (uint32_t i = 0; i < Image().kernel_count; ++i) {
    if (name == Image().kernels[i].name) return Image().kernels[i];
  }
  ADD_FAILURE() << "no kernel " << name;
  return Image().kernels[0];
}

struct Touched {
  const char* begin;
  uint64_t bytes;
  bool operator==(const Touched&) const = default;
};
using Touches = std::vector<Touched>;

// Keeps runs inside one array only: a traced twin also reports its own stack and indices.
struct Watch {
  const void* base;
  size_t bytes;
  Touches reads, writes;
};
void NoteTouch(void* context, const void* address, uint64_t bytes, int write) {
  auto* watches = static_cast<std::vector<Watch>*>(context);
  for (Watch& watch : *watches) {
    const char* begin = static_cast<const char*>(address);
    const char* base = static_cast<const char*>(watch.base);
    if (begin < base || begin >= base + watch.bytes) continue;
    (write ? watch.writes : watch.reads).push_back({begin, bytes});
  }
}

tm_twin_launch MakeLaunch(uint32_t blocks, uint32_t threads, void* const* params) {
  tm_twin_launch launch = {};
  launch.grid[0] = blocks;
  launch.grid[1] = launch.grid[2] = 1;
  launch.block[0] = threads;
  launch.block[1] = launch.block[2] = 1;
  launch.params = params;
  return launch;
}

TEST(TwinImage, DescribesParametersAsTheDriverDoes) {
  EXPECT_EQ(Image().magic, TIDEMARK_TWIN_MAGIC);
  EXPECT_EQ(Image().version, TIDEMARK_TWIN_VERSION);
  EXPECT_EQ(Image().kernel_count, 5u);
  const tm_twin_kernel& kernel = Kernel("SampleStride");
  ASSERT_EQ(kernel.param_count, 5u);
  const uint32_t offsets[] = {0, 8, 16, 24, 28};
  const uint32_t sizes[] = {1, 8, 8, 4, 4};
  const uint32_t flags[] = {0, kTwinParamPointer | kTwinParamConstPointee, kTwinParamPointer, 0, 0};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(kernel.params[i].offset, offsets[i]) << i;
    EXPECT_EQ(kernel.params[i].size, sizes[i]) << i;
    EXPECT_EQ(kernel.params[i].flags, flags[i]) << i;
  }
  EXPECT_EQ(Kernel("SampleNothing").param_count, 0u);
}

TEST(TwinImage, IsRegisteredBeforeMainUnderItsHostFunctions) {
  EXPECT_EQ(TheRecord().magic, 0x466243b1);
  EXPECT_EQ(TheRecord().image, tidemark_twin_image_sample());
  EXPECT_TRUE(TheRecord().ended);
  EXPECT_EQ(TheRecord().functions.size(), 5u);
  EXPECT_EQ(TheRecord().functions["SampleScale"], reinterpret_cast<const void*>(&SampleScale));
}

TEST(Twin, RunsOnlyTheBlocksItIsAskedFor) {
  std::vector<float> in(100), out(100, -1.0f);
  std::iota(in.begin(), in.end(), 0.0f);
  const float* from = in.data();
  float* to = out.data();
  float factor = 3.0f;
  int count = 100;
  void* params[] = {&from, &to, &factor, &count};
  const tm_twin_launch launch = MakeLaunch(4, 32, params);
  Kernel("SampleScale").run(&launch, 1, 2);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(out[i], i >= 32 && i < 64 ? 3.0f * i : -1.0f) << i;
  Kernel("SampleScale").run(&launch, 0, 4);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(out[i], 3.0f * i) << i;
}

TEST(Twin, CostIsComputedFromTheKernelsParameters) {
  const float* from = nullptr;
  float* to = nullptr;
  float factor = 0;
  int count = 1000;
  void* params[] = {&from, &to, &factor, &count};
  const tm_twin_launch launch = MakeLaunch(4, 32, params);
  double flops = 0, bytes = 0;
  Kernel("SampleScale").cost(&launch, &flops, &bytes);
  EXPECT_EQ(flops, 1000.0);
  EXPECT_EQ(bytes, 8000.0);
  EXPECT_EQ(Kernel("SampleStride").cost, nullptr);
}

TEST(Twin, AtomicsCountEveryThread) {
  std::vector<unsigned char> in(1000);
  for (size_t i = 0; i < in.size(); ++i) in[i] = i % 10;
  std::vector<unsigned> bins(10);
  const unsigned char* from = in.data();
  int count = 1000;
  unsigned* to = bins.data();
  void* params[] = {&from, &count, &to};
  const tm_twin_launch launch = MakeLaunch(8, 128, params);
  Kernel("SampleHistogram").run(&launch, 0, 8);
  EXPECT_EQ(bins, std::vector<unsigned>(10, 100));
}

std::vector<float> ReversedBlocks(bool traced, std::vector<Watch>* watches) {
  std::vector<float> data(96);
  std::iota(data.begin(), data.end(), 0.0f);
  float* mine = data.data();
  void* params[] = {&mine};
  std::vector<float> shared(32);
  tm_twin_launch launch = MakeLaunch(3, 32, params);
  launch.dynamic_shared = shared.data();
  launch.dynamic_shared_bytes = 32 * sizeof(float);
  if (watches != nullptr) {
    watches->push_back({mine, 96 * sizeof(float), {}, {}});
    launch.touch = &NoteTouch;
    launch.touch_context = watches;
  }
  const tm_twin_kernel& kernel = Kernel("SampleReverse");
  for (uint64_t block = 0; block < 3; ++block) {
    Fibers().RunBlock(traced ? kernel.run_thread_traced : kernel.run_thread, launch, block);
  }
  return data;
}

TEST(Twin, BarrierKernelSharesMemoryBetweenThreadsOfABlock) {
  EXPECT_EQ(Kernel("SampleReverse").uses_barrier, 1u);
  EXPECT_EQ(Kernel("SampleReverse").run, nullptr);
  const std::vector<float> data = ReversedBlocks(false, nullptr);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(data[i], i / 32 * 32 + 31 - i % 32) << i;
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(TracedTwin, ReportsContiguousAccessesAsOneRun) {
  std::vector<float> in(5000, 2.0f), out(5000);
  const float* from = in.data();
  float* to = out.data();
  float factor = 3.0f;
  int count = 5000;
  void* params[] = {&from, &to, &factor, &count};
  tm_twin_launch launch = MakeLaunch(40, 128, params);
  std::vector<Watch> watches = {{from, 20000, {}, {}}, {to, 20000, {}, {}}};
  launch.touch = &NoteTouch;
  launch.touch_context = &watches;
  Kernel("SampleScale").run_traced(&launch, 0, 40);
  EXPECT_EQ(out, std::vector<float>(5000, 6.0f));
  EXPECT_EQ(watches[0].reads, (Touches{{reinterpret_cast<const char*>(from), 20000}}));
  EXPECT_TRUE(watches[0].writes.empty());
  EXPECT_EQ(watches[1].writes, (Touches{{reinterpret_cast<const char*>(to), 20000}}));
  EXPECT_TRUE(watches[1].reads.empty());
}

TEST(TracedTwin, ReportsStridedAccessesByteExactly) {
  std::vector<double> in(50 * 100, 1.5), out(50);
  char flag = 1;
  const double* from = in.data();
  double* to = out.data();
  int rows = 50, columns = 100;
  void* params[] = {&flag, &from, &to, &rows, &columns};
  tm_twin_launch launch = MakeLaunch(1, 1, params);
  launch.block[1] = 64;
  std::vector<Watch> watches = {{from, in.size() * 8, {}, {}}};
  launch.touch = &NoteTouch;
  launch.touch_context = &watches;
  Kernel("SampleStride").run_traced(&launch, 0, 1);
  ASSERT_EQ(watches[0].reads.size(), 50u);
  for (int row = 0; row < 50; ++row) {
    EXPECT_EQ(watches[0].reads[row],
              (Touched{reinterpret_cast<const char*>(from + row * columns), 8}));
  }
}

TEST(TracedTwin, ReportsAtomicsAsReadAndWrite) {
  std::vector<unsigned char> in(64, 7);
  std::vector<unsigned> bins(16);
  const unsigned char* from = in.data();
  int count = 64;
  unsigned* to = bins.data();
  void* params[] = {&from, &count, &to};
  tm_twin_launch launch = MakeLaunch(1, 64, params);
  std::vector<Watch> watches = {{to, 64, {}, {}}};
  launch.touch = &NoteTouch;
  launch.touch_context = &watches;
  Kernel("SampleHistogram").run_traced(&launch, 0, 1);
  EXPECT_EQ(bins[7], 64u);
  const Touches expected = {{reinterpret_cast<const char*>(to + 7), 4}};
  EXPECT_EQ(watches[0].reads, expected);
  EXPECT_EQ(watches[0].writes, expected);
}

TEST(TracedTwin, FollowsThreadsAcrossBarriers) {
  std::vector<Watch> watches;
  const std::vector<float> data = ReversedBlocks(true, &watches);
  for (int i = 0; i < 96; ++i) EXPECT_EQ(data[i], i / 32 * 32 + 31 - i % 32) << i;
  uint64_t read = 0, written = 0;
  for (const Touched& run : watches[0].reads) read += run.bytes;
  for (const Touched& run : watches[0].writes) written += run.bytes;
  EXPECT_EQ(read, 96 * sizeof(float));
  EXPECT_EQ(written, 96 * sizeof(float));
}

#endif

}  // namespace
