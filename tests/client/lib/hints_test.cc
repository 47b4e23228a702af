// libtidemark inside a job under a budget of 16 MiB, through the preloaded library over the
// software GPU: what each call promises is looked up in the snapshot, and the bytes never change.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tidemark/tidemark.hpp"

namespace tidemark {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kBytes = 4 * kMiB;  // four fill the budget

class Hints : public ::testing::Test {
 protected:
  ~Hints() override {
    for (void* buffer : buffers_) cudaFree(buffer);
  }
  char* Allocate(int value) {
    void* buffer = nullptr;
    EXPECT_EQ(cudaMalloc(&buffer, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMemset(buffer, value, kBytes), cudaSuccess);
    buffers_.push_back(buffer);
    return static_cast<char*>(buffer);
  }
  std::vector<char*> AllocateMany(int count) {
    std::vector<char*> many;
    for (int i = 0; i < count; ++i) many.push_back(Allocate(i + 1));
    return many;
  }
  static bool Holds(const char* buffer, int value) {
    std::vector<char> bytes(kBytes);
    EXPECT_EQ(cudaMemcpy(bytes.data(), buffer, kBytes, cudaMemcpyDeviceToHost), cudaSuccess);
    return bytes == std::vector<char>(kBytes, static_cast<char>(value));
  }
  static tm_buffer_memory Look(const void* address) {
    std::vector<tm_buffer_memory> all;
    EXPECT_TRUE(Buffers(&all).ok());
    for (const tm_buffer_memory& one : all) {
      if (one.address == address) return one;
    }
    ADD_FAILURE() << "the snapshot lacks a live buffer";
    return {};
  }
  static bool OnDevice(const void* address) { return Look(address).host_bytes == 0; }
  static tm_device_memory Device() {
    std::vector<tm_device_memory> devices;
    EXPECT_TRUE(Devices(&devices).ok());
    EXPECT_EQ(devices.size(), 1u);
    return devices.at(0);
  }

  std::vector<void*> buffers_;
};

TEST_F(Hints, AreInactiveBeforeTheFirstCudaCall) {
  // The first test of the program; later ones find the process started.
  EXPECT_EQ(tm_active(), TM_INACTIVE);
  EXPECT_EQ(tm_will_use(this, 1), TM_INACTIVE);
  EXPECT_EQ(tm_mark_step(), TM_INACTIVE);
  ASSERT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(tm_active(), TM_OK);
}

TEST_F(Hints, SnapshotNamesEveryBufferAndAddsUp) {
  const std::vector<char*> many = AllocateMany(6);
  size_t count = 0;
  EXPECT_EQ(tm_snapshot_buffers(nullptr, 0, &count), TM_OK);
  EXPECT_EQ(count, 6u);
  std::vector<tm_buffer_memory> all;
  ASSERT_TRUE(Buffers(&all).ok());
  ASSERT_EQ(all.size(), 6u);
  uint64_t on_host = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].bytes, kBytes);
    EXPECT_EQ(all[i].buffer_class, uint32_t{TM_UNKNOWN});
    if (i > 0) {
      EXPECT_GT(all[i].address, all[i - 1].address);
    }
    on_host += all[i].host_bytes;
  }
  const tm_device_memory device = Device();
  EXPECT_EQ(device.budget_bytes, 16 * kMiB);
  EXPECT_LE(device.reserved_bytes, 16 * kMiB);
  EXPECT_EQ(device.requested_bytes, 6 * kBytes);
  EXPECT_EQ(device.host_resident_bytes, on_host);
  EXPECT_EQ(device.under_daemon, 0u);
  std::vector<tm_buffer_memory> two(2);
  EXPECT_EQ(tm_snapshot_buffers(two.data(), 2, &count), TM_OK);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(two[1].address, all[1].address);
}

TEST_F(Hints, WillUseBringsABufferBackAndKeepsItsBytes) {
  const std::vector<char*> many = AllocateMany(6);
  ASSERT_FALSE(OnDevice(many[0])) << "the least recently used one left";
  EXPECT_EQ(tm_will_use(many[0] + 5, 1), TM_OK);
  EXPECT_TRUE(OnDevice(many[0]));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(Holds(many[static_cast<size_t>(i)], i + 1)) << i;
}

TEST_F(Hints, DoneWithIsTheFirstToLeave) {
  const std::vector<char*> many = AllocateMany(4);
  EXPECT_EQ(tm_done_with(many[3], kBytes), TM_OK);
  Allocate(9);
  EXPECT_FALSE(OnDevice(many[3])) << "although it was used last";
  EXPECT_TRUE(OnDevice(many[0]));
  EXPECT_TRUE(Holds(many[3], 4));
}

TEST_F(Hints, DoneWithOutweighsWhatWasLearnedFromEarlierIterations) {
  const std::vector<char*> many = AllocateMany(4);
  for (int round = 0; round < 12; ++round) {
    for (char* buffer : many) EXPECT_EQ(cudaMemset(buffer, round, kBytes), cudaSuccess);
  }
  EXPECT_EQ(tm_done_with(many[0], kBytes), TM_OK);
  Allocate(9);
  EXPECT_FALSE(OnDevice(many[0])) << "although it would have been the next";
  EXPECT_TRUE(OnDevice(many[3]));
  EXPECT_TRUE(Holds(many[0], 11));
}

TEST_F(Hints, APinnedBufferStaysUntilUnpinned) {
  const std::vector<char*> first = AllocateMany(1);
  ASSERT_EQ(tm_pin(first[0], kBytes), TM_OK);
  EXPECT_EQ(Look(first[0]).pinned, 1u);
  EXPECT_GE(Device().pinned_bytes, kBytes);
  AllocateMany(5);
  EXPECT_TRUE(OnDevice(first[0]));
  EXPECT_EQ(tm_unpin(first[0], kBytes), TM_OK);
  EXPECT_EQ(tm_unpin(first[0], kBytes), TM_BAD_ARGUMENT) << "it is not pinned any more";
  Allocate(9);
  EXPECT_FALSE(OnDevice(first[0]));
  EXPECT_TRUE(Holds(first[0], 1));
}

TEST_F(Hints, APinThatDoesNotFitPinsNothing) {
  const std::vector<char*> many = AllocateMany(6);
  std::vector<Pin*> pins;
  for (int i = 0; i < 4; ++i) {
    pins.push_back(new Pin(many[static_cast<size_t>(i)], kBytes));
    EXPECT_TRUE(pins.back()->status().ok()) << i;
  }
  const Pin fifth(many[5], kBytes);
  EXPECT_EQ(fifth.status().code(), TM_IN_PART);
  EXPECT_EQ(Look(many[5]).pinned, 0u);
  EXPECT_TRUE(Holds(many[5], 6)) << "reached over the link";
  for (Pin* pin : pins) delete pin;
  EXPECT_EQ(Device().pinned_bytes, 0u);
}

TEST_F(Hints, WhatNothingActsOnYetSaysSo) {
  const uint64_t steps = Device().steps;
  EXPECT_EQ(tm_mark_step(), TM_NOT_USED_YET);
  EXPECT_EQ(Device().steps, steps + 1);
  EXPECT_EQ(tm_mark_phase(TM_BACKWARD), TM_NOT_USED_YET);
  EXPECT_EQ(tm_mark_phase(17), TM_BAD_ARGUMENT);
}

TEST_F(Hints, AClassIsKeptAsLongAsTheBuffer) {
  const char* buffer = Allocate(1);
  EXPECT_TRUE(Status(tm_register(buffer, kBytes, TM_GRADIENT)).ok());
  EXPECT_EQ(Look(buffer).buffer_class, uint32_t{TM_GRADIENT});
  EXPECT_EQ(tm_register(buffer, kBytes, 6), TM_BAD_ARGUMENT);
  EXPECT_EQ(Look(buffer).buffer_class, uint32_t{TM_GRADIENT});
}

TEST_F(Hints, ForeignAddressesAndRangesAreRefused) {
  char* buffer = Allocate(1);
  for (const void* address : {static_cast<const void*>(this), static_cast<const void*>(nullptr),
                              static_cast<const void*>(buffer + kBytes)}) {
    EXPECT_EQ(tm_will_use(address, 1), TM_NOT_MANAGED);
    EXPECT_EQ(tm_pin(address, 1), TM_NOT_MANAGED);
  }
  EXPECT_EQ(tm_pin(buffer, 0), TM_BAD_ARGUMENT);
  EXPECT_EQ(tm_pin(buffer, SIZE_MAX), TM_BAD_ARGUMENT);
  EXPECT_TRUE(Holds(buffer, 1));
}

TEST_F(Hints, AFreedBufferIsForgotten) {
  char* buffer = Allocate(1);
  const uint64_t id = Look(buffer).id;
  ASSERT_EQ(tm_pin(buffer, kBytes), TM_OK);
  ASSERT_EQ(tm_register(buffer, kBytes, TM_OPTIMIZER), TM_OK);
  EXPECT_EQ(cudaFree(buffer), cudaSuccess);
  buffers_.clear();
  EXPECT_EQ(tm_done_with(buffer, 1), TM_NOT_MANAGED);
  const char* next = Allocate(2);
  EXPECT_NE(Look(next).id, id);
  EXPECT_EQ(Look(next).buffer_class, uint32_t{TM_UNKNOWN});
  EXPECT_EQ(Look(next).pinned, 0u);
}

}  // namespace
}  // namespace tidemark
