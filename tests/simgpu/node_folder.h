// A node of a test alone: its folder in /dev/shm, gone with the fixture, and the configuration that
// names it. Threads: test code on one thread.

#ifndef TESTS_SIMGPU_NODE_FOLDER_H_
#define TESTS_SIMGPU_NODE_FOLDER_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "tests/simgpu/device.h"

namespace simgpu_tests {

constexpr size_t kMiB = size_t{1} << 20;

// The node of another test clears away what dead processes left there, perhaps at this moment.
inline void RemoveNodeFolder(const std::string& folder) {
  std::error_code error;
  do {
    std::filesystem::remove_all(folder, error);
  } while (error == std::errc::no_such_file_or_directory);
  EXPECT_FALSE(error) << folder << ": " << error.message();
}

// One device of 64 MiB.
class NodeFolderTest : public ::testing::Test {
 protected:
  NodeFolderTest() {
    char name[] = "/dev/shm/simgpu-test-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~NodeFolderTest() override { RemoveNodeFolder(folder_); }
  std::string Config(const std::string& more = "") const {
    return "memory=64MiB,directory=" + folder_ + (more.empty() ? "" : "," + more);
  }

  std::string folder_;
};

inline size_t FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_CUDA(cuMemGetInfo(&free, &total));
  return free;
}

}  // namespace simgpu_tests

#endif  // TESTS_SIMGPU_NODE_FOLDER_H_
