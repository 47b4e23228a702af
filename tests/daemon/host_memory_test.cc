#include "daemon/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/daemon/scratch_dir.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class HostMemoryFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    Put("/proc/meminfo",
        "MemTotal:       4194304 kB\nMemFree:  17 kB\nMemAvailable:   2097152 kB\n");
  }
  void Put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_.path() + path).parent_path());
    WriteFile(dir_.path() + path, text);
  }
  ScratchDir dir_;
};

TEST_F(HostMemoryFiles, AreReadFromMeminfo) {
  const HostMemory memory = ReadHostMemory(dir_.path());
  EXPECT_EQ(memory.total_bytes, 4096 * kMiB);
  EXPECT_EQ(memory.available_bytes, 2048 * kMiB);
  EXPECT_EQ(HostFloorBytes(memory), 128 * kMiB);
}

TEST_F(HostMemoryFiles, AreBoundedByTheTightestCgroupAbove) {
  Put("/proc/self/cgroup", "0::/slice/job\n");
  Put("/sys/fs/cgroup/slice/memory.max", "1073741824\n");
  Put("/sys/fs/cgroup/slice/memory.current", "104857600\n");
  Put("/sys/fs/cgroup/slice/job/memory.max", "max\n");
  EXPECT_EQ(ReadHostMemory(dir_.path()).available_bytes, 924 * kMiB);
}

TEST_F(HostMemoryFiles, AreBoundedByAVersionOneCgroup) {
  Put("/proc/self/cgroup", "5:cpu:/x\n4:memory:/job\n");
  Put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "524288000\n");
  Put("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "524289000\n");
  EXPECT_EQ(ReadHostMemory(dir_.path()).available_bytes, 0u);
}

TEST(HostMemory, OfThisMachineIsPlausible) {
  const HostMemory memory = ReadHostMemory();
  EXPECT_GT(memory.available_bytes, 0u);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

}  // namespace
}  // namespace tidemark::daemon
