// Memory of a node over several processes: capacity, death, exit, fork, and the sentences of a node
// that cannot be used. Each process is a fork that initialises the driver itself.

#include <cuda.h>
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/simgpu/device.h"
#include "tests/simgpu/node_folder.h"

namespace simgpu_tests {
namespace {

constexpr int kDeadlineSeconds = 60;

class NodeTest : public NodeFolderTest {
 protected:
  bool NothingLeft() const {
    return !std::filesystem::exists(folder_) || std::filesystem::is_empty(folder_);
  }
};

// A process that initialises the driver under `config`, does `body`, tells, and then waits to be
// killed or, when `leave` is written to, exits in the ordinary way.
struct Peer {
  pid_t pid = -1;
  int told = -1;
  int leave = -1;
};

void BeginDriver(const std::string& config) {
  setenv("SIMGPU", config.c_str(), 1);
  CUcontext context = nullptr;
  EXPECT_CUDA(cuInit(0));
  EXPECT_CUDA(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_CUDA(cuCtxSetCurrent(context));
}

template <typename Body>
Peer StartPeer(const std::string& config, Body body) {
  int told[2];
  int leave[2];
  if (pipe(told) != 0 || pipe(leave) != 0) return {};
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(kDeadlineSeconds);
    close(told[0]);
    close(leave[1]);
    BeginDriver(config);
    const char outcome = body() ? 'y' : 'n';
    if (write(told[1], &outcome, 1) != 1) _exit(1);
    char ignored;
    if (read(leave[0], &ignored, 1) < 0) _exit(1);
    exit(0);
  }
  close(told[1]);
  close(leave[0]);
  return {pid, told[0], leave[1]};
}

bool Told(const Peer& peer) {
  char outcome = 'n';
  return read(peer.told, &outcome, 1) == 1 && outcome == 'y';
}

void Kill(const Peer& peer) {
  kill(peer.pid, SIGKILL);
  waitpid(peer.pid, nullptr, 0);
  close(peer.told);
  close(peer.leave);
}

void LetExit(const Peer& peer) {
  close(peer.leave);
  waitpid(peer.pid, nullptr, 0);
  close(peer.told);
}

bool AllocateMiB(size_t count) {
  CUdeviceptr data = 0;
  return cuMemAlloc(&data, count * kMiB) == CUDA_SUCCESS;
}

TEST_F(NodeTest, CapacityIsSharedByProcesses) {
  const Peer peer = StartPeer(Config(), [] { return AllocateMiB(40); });
  ASSERT_TRUE(Told(peer));
  InChild(Config(), [] {
    EXPECT_IN_CHILD(FreeBytes() == 24 * kMiB);
    CUdeviceptr data = 0;
    EXPECT_CODE(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc(&data, 26 * kMiB));
    EXPECT_CUDA(cuMemAlloc(&data, 24 * kMiB));
  });
  Kill(peer);
}

TEST_F(NodeTest, MemoryOfAKilledProcessReturns) {
  const Peer peer = StartPeer(Config(), [] { return AllocateMiB(40); });
  ASSERT_TRUE(Told(peer));
  Kill(peer);
  InChild(Config(), [] { EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB); });
  EXPECT_TRUE(NothingLeft());
}

TEST_F(NodeTest, MemoryOfAProcessThatExitsWithoutFreeingReturnsToThoseThatStay) {
  const Peer stays = StartPeer(Config(), [] { return true; });
  ASSERT_TRUE(Told(stays));
  for (int round = 0; round < 3; ++round) {
    const Peer leaves = StartPeer(Config(), [] { return AllocateMiB(40); });
    ASSERT_TRUE(Told(leaves)) << "round " << round;
    LetExit(leaves);
  }
  InChild(Config(), [] { EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB); });
  Kill(stays);
}

TEST_F(NodeTest, AnIpcHandleOpenedTwiceIsOneMappingClosedTwice) {
  int pass[2];
  ASSERT_EQ(pipe(pass), 0);
  const Peer maker = StartPeer(Config(), [&pass] {
    CUdeviceptr data = 0;
    CUipcMemHandle handle = {};
    return cuMemAlloc(&data, 4 * kMiB) == CUDA_SUCCESS &&
           cuMemsetD32(data, 77, 1) == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS &&
           cuIpcGetMemHandle(&handle, data) == CUDA_SUCCESS &&
           write(pass[1], &handle, sizeof handle) == static_cast<ssize_t>(sizeof handle);
  });
  ASSERT_TRUE(Told(maker));
  CUipcMemHandle handle = {};
  ASSERT_EQ(read(pass[0], &handle, sizeof handle), static_cast<ssize_t>(sizeof handle));
  InChild(Config(), [&handle] {
    constexpr unsigned kFlags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUdeviceptr first = 0;
    CUdeviceptr second = 0;
    uint32_t word = 0;
    EXPECT_CUDA(cuIpcOpenMemHandle(&first, handle, kFlags));
    EXPECT_CUDA(cuIpcOpenMemHandle(&second, handle, kFlags));
    EXPECT_IN_CHILD(first == second);
    EXPECT_CUDA(cuIpcCloseMemHandle(first));
    EXPECT_CUDA(cuMemcpyDtoH(&word, first, 4));
    EXPECT_IN_CHILD(word == 77);
    EXPECT_IN_CHILD(FreeBytes() == 60 * kMiB);
    EXPECT_CUDA(cuIpcCloseMemHandle(first));
    EXPECT_CODE(CUDA_ERROR_INVALID_VALUE, cuIpcCloseMemHandle(first));
  });
  close(pass[0]);
  close(pass[1]);
  Kill(maker);
}

TEST_F(NodeTest, NothingIsLeftBehindByTheLastProcess) {
  InChild(Config(), [] { EXPECT_IN_CHILD(AllocateMiB(10)); });
  EXPECT_TRUE(NothingLeft());
}

TEST_F(NodeTest, AForkedChildKeepsNoMemoryOfItsParent) {
  InChild(Config(), [] {
    CUdeviceptr data = 0;
    EXPECT_CUDA(cuMemAlloc(&data, 40 * kMiB));
    int hold[2];
    EXPECT_IN_CHILD(pipe(hold) == 0);
    const pid_t worker = fork();
    if (worker == 0) {
      close(hold[1]);
      char ignored;
      _exit(read(hold[0], &ignored, 1) < 0);
    }
    EXPECT_CUDA(cuMemFree(data));
    EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB);
    close(hold[1]);
    waitpid(worker, nullptr, 0);
  });
}

TEST_F(NodeTest, AForkedChildOfAnInitialisedProcessHasNoDriver) {
  InChild(Config(), [] {
    const pid_t worker = fork();
    if (worker == 0) {
      int count = 0;
      _exit(cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                    cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED
                ? 0
                : 1);
    }
    int status = 1;
    waitpid(worker, &status, 0);
    EXPECT_IN_CHILD(status == 0);
  });
}

TEST_F(NodeTest, ADescriptorInFlightKeepsTheMemoryOfADeadMaker) {
  InChild(Config(), [] {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(cuMemCreate(&handle, 4 * kMiB, &prop, 0));
    int fd = -1;
    EXPECT_CUDA(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    EXPECT_CUDA(cuMemRelease(handle));
    EXPECT_IN_CHILD(FreeBytes() == 60 * kMiB);  // the descriptor holds it
    CUmemGenericAllocationHandle again = 0;
    EXPECT_CUDA(cuMemImportFromShareableHandle(&again,
                                               reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    EXPECT_IN_CHILD(FreeBytes() == 60 * kMiB);
    EXPECT_CUDA(cuMemRelease(again));
    EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB);
  });
}

TEST_F(NodeTest, AForeignDescriptorIsNoMemory) {
  InChild(Config(), [] {
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CODE(
        CUDA_ERROR_INVALID_VALUE,
        cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  });
}

TEST_F(NodeTest, HostMemoryCountsAgainstNoDevice) {
  InChild(Config(), [] {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_CUDA(cuMemCreate(&handle, 100 * kMiB, &prop, 0));
    EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB);
    EXPECT_CUDA(cuMemRelease(handle));
  });
}

TEST_F(NodeTest, HandlesNeedNoDescriptors) {
  InChild(Config(), [] {
    const int before = open("/dev/null", O_RDONLY);
    close(before);
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    for (int i = 0; i < 32; ++i) {
      CUmemGenericAllocationHandle handle = 0;
      EXPECT_CUDA(cuMemCreate(&handle, 2 * kMiB, &prop, 0));
    }
    const int after = open("/dev/null", O_RDONLY);
    EXPECT_IN_CHILD(after == before);
  });
}

TEST_F(NodeTest, WhatAKilledNodeLeftIsRemovedByTheNextProcessOfAnyNode) {
  const std::string parent = folder_;
  folder_ = parent + "/dead";
  const Peer killed = StartPeer(Config(), [] { return AllocateMiB(40); });
  ASSERT_TRUE(Told(killed));
  folder_ = parent + "/live";
  const Peer alive = StartPeer(Config(), [] { return AllocateMiB(4); });
  ASSERT_TRUE(Told(alive));
  Kill(killed);
  ASSERT_TRUE(std::filesystem::exists(parent + "/dead/table"));
  folder_ = parent + "/own";
  InChild(Config(), [] { EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB); });
  EXPECT_FALSE(std::filesystem::exists(parent + "/dead"));
  EXPECT_TRUE(std::filesystem::exists(parent + "/live/table"));
  LetExit(alive);
  folder_ = parent;
  EXPECT_TRUE(NothingLeft());
}

TEST_F(NodeTest, AFolderWithFilesOfSomebodyElseIsLeftAlone) {
  const std::string parent = folder_;
  folder_ = parent + "/dead";
  const Peer killed = StartPeer(Config(), [] { return AllocateMiB(40); });
  ASSERT_TRUE(Told(killed));
  std::ofstream(folder_ + "/notes") << "mine";
  Kill(killed);
  folder_ = parent + "/own";
  InChild(Config(), [] { EXPECT_IN_CHILD(FreeBytes() == 64 * kMiB); });
  EXPECT_TRUE(std::filesystem::exists(parent + "/dead/notes"));
  EXPECT_TRUE(std::filesystem::exists(parent + "/dead/table"));
  folder_ = parent;
}

TEST_F(NodeTest, ANodeOfAnotherSizeIsRefusedWithBothSizes) {
  const Peer peer = StartPeer(Config(), [] { return true; });
  ASSERT_TRUE(Told(peer));
  const pid_t other = fork();
  if (other == 0) {
    setenv("SIMGPU", ("memory=128MiB,directory=" + folder_).c_str(), 1);
    _exit(cuInit(0) == CUDA_ERROR_INVALID_VALUE ? 0 : 1);
  }
  int status = 1;
  waitpid(other, &status, 0);
  EXPECT_EQ(status, 0);
  Kill(peer);
}

}  // namespace
}  // namespace simgpu_tests
