#include "daemon/device_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

std::string WhyNot(const std::string& library, const std::vector<ManagedDevice>& devices) {
  return std::string(DeviceUsage::Open(library, devices).status().message());
}

TEST(DeviceUsage, AsksTheLibraryAboutTheDevicesItKnows) {
  FakeDriver driver({8 * kChunk, 8 * kChunk}, 0);
  const std::vector<ManagedDevice> devices = *ListDevices(driver.table());
  const auto usage = DeviceUsage::Open(FAKE_NVML, devices);
  ASSERT_TRUE(usage.ok()) << usage.status();
  EXPECT_EQ((*usage)->UsedBytes(0), std::nullopt) << "it does not answer";
  setenv("FAKE_NVML_USED", "12345", 1);
  EXPECT_EQ((*usage)->UsedBytes(0), 12345u);
  EXPECT_EQ((*usage)->UsedBytes(1), std::nullopt);
  EXPECT_EQ((*usage)->UsedBytes(9), std::nullopt);
  unsetenv("FAKE_NVML_USED");
}

TEST(DeviceUsage, SaysWhatIsMissing) {
  FakeDriver driver({8 * kChunk}, 0);
  std::vector<ManagedDevice> devices = *ListDevices(driver.table());
  EXPECT_THAT(WhyNot("/nonexistent/libnvidia-ml.so.1", devices), HasSubstr("cannot be opened"));
  EXPECT_THAT(WhyNot("libm.so.6", devices), HasSubstr("lacks a function"));
  setenv("FAKE_NVML_BROKEN", "1", 1);
  EXPECT_THAT(WhyNot(FAKE_NVML, devices), HasSubstr("nvmlInit_v2 answers 999"));
  unsetenv("FAKE_NVML_BROKEN");
  devices[0].uuid[0] ^= 1;
  EXPECT_THAT(WhyNot(FAKE_NVML, devices), HasSubstr("knows none of the devices"));
}

class MeasuredDevice : public ::testing::Test {
 protected:
  MeasuredDevice() : node_({64 * kChunk}) {
    node_.used = [this](uint32_t) { return used_; };
    node_.Start(TestNode::NoReserve());
  }
  void Use(std::optional<uint64_t> chunks) {
    used_.reset();
    if (chunks) used_ = *chunks * kChunk;
    node_.broker->Tick();
  }
  DeviceSnapshot Device() { return node_.broker->Snapshot().devices[0]; }

  std::optional<uint64_t> used_;
  TestNode node_;
};

TEST_F(MeasuredDevice, ShowsWhatOthersUseWithoutARefusal) {
  TestJob job(&node_, "train");
  EXPECT_FALSE(Device().foreign_measured);
  job.Lease(10, 10);
  Use(30);
  EXPECT_TRUE(Device().foreign_measured);
  EXPECT_EQ(Device().foreign_bytes, 20 * kChunk);
  EXPECT_EQ(Device().free_bytes, 34 * kChunk);
  EXPECT_EQ(job.budget_chunks(), 44u) << "nobody is promised what others hold";
  EXPECT_EQ(job.Lease(60, 1).count, 34u);
  Use(std::nullopt);
  EXPECT_FALSE(Device().foreign_measured);
  EXPECT_EQ(job.budget_chunks(), 64u);
}

TEST_F(MeasuredDevice, LeavesTheReserveOrWhatOthersUseWhicheverIsMore) {
  BrokerOptions options = TestNode::NoReserve();
  options.device_reserve_bytes = 8 * kChunk;
  node_.Start(options);
  TestJob job(&node_, "train");
  Use(5);
  EXPECT_EQ(job.budget_chunks(), 56u);
  Use(12);
  EXPECT_EQ(job.budget_chunks(), 52u);
}

TEST_F(MeasuredDevice, DoesNotTakeAJobsOwnDriverMemoryFromItTwice) {
  TestJob job(&node_, "train");
  tm_wire_counters_page* page = job.counters();
  page->magic = TM_WIRE_MAGIC;
  page->version = TM_WIRE_PAGE_VERSION;
  page->device[0].passed_through_bytes = 6 * kChunk;
  Use(10);
  EXPECT_EQ(Device().foreign_bytes, 10 * kChunk);
  EXPECT_EQ(job.budget_chunks(), 60u) << "it charges the 6 to its budget itself";
}

}  // namespace
}  // namespace tidemark::daemon
