#include "daemon/pool.h"

#include <gtest/gtest.h>

#include "tests/daemon/fake_driver.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kChunk = 2 << 20;
constexpr Slot kDevice{0, TM_WIRE_DEVICE};
constexpr Slot kHost{0, TM_WIRE_HOST};

class PoolOfEight : public ::testing::Test {
 protected:
  FakeDriver driver_{{8 * kChunk}, 4 * kChunk};
  Pool pool_{driver_.table(), *ListDevices(driver_.table()), kChunk, 100};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(PoolOfEight, RecyclesForTheSameUserWithoutADriverCall) {
  const ChunkId chunk = pool_.Take(kDevice, 1, 1, 8).created.at(0);
  pool_.GiveBack(chunk, now_);
  driver_.FailCreate(1, CUDA_ERROR_UNKNOWN);
  const Pool::Taken taken = pool_.Take(kDevice, 1, 1, 8);
  EXPECT_EQ(taken.reused, std::vector<ChunkId>{chunk});
  EXPECT_TRUE(taken.created.empty());
}

TEST_F(PoolOfEight, CreatesAnewForAnotherUser) {
  const Pool::Taken first = pool_.Take(kDevice, 1, 8, 8);
  for (const ChunkId chunk : first.created) pool_.GiveBack(chunk, now_);
  const Pool::Taken second = pool_.Take(kDevice, 2, 3, 8);
  EXPECT_TRUE(second.reused.empty());
  EXPECT_EQ(second.created.size(), 3u);
  EXPECT_EQ(second.destroyed.size(), 3u);
  EXPECT_EQ(driver_.Alive(0), 8);
}

TEST_F(PoolOfEight, MakesRoomFromIdleChunksWhenTheDriverHasNoMore) {
  const Pool::Taken first = pool_.Take(kDevice, 1, 4, 100);
  for (const ChunkId chunk : first.created) pool_.GiveBack(chunk, now_);
  driver_.TakeForeign(0, 4 * kChunk);
  const Pool::Taken second = pool_.Take(kDevice, 2, 5, 100);
  EXPECT_EQ(second.created.size(), 4u);
  EXPECT_TRUE(absl::IsResourceExhausted(second.status));
  EXPECT_EQ(driver_.Alive(0), 4);
}

TEST_F(PoolOfEight, StopsAtTheCap) {
  const Pool::Taken taken = pool_.Take(kDevice, 1, 6, 5);
  EXPECT_EQ(taken.created.size(), 5u);
  EXPECT_TRUE(absl::IsResourceExhausted(taken.status));
}

TEST_F(PoolOfEight, TrimsOnlyWhatWasIdleLongEnough) {
  const Pool::Taken taken = pool_.Take(kDevice, 1, 2, 8);
  pool_.GiveBack(taken.created[0], now_);
  pool_.GiveBack(taken.created[1], now_ + absl::Seconds(9));
  EXPECT_EQ(pool_.Trim(now_ + absl::Seconds(5)), std::vector<ChunkId>{taken.created[0]});
  EXPECT_EQ(driver_.Alive(0), 1);
}

TEST_F(PoolOfEight, UsesTheRoomOfDoomedChunksBeforeTheyAreReaped) {
  const Pool::Taken first = pool_.Take(kDevice, 1, 8, 8);
  for (const ChunkId chunk : first.created) pool_.Doom(chunk);
  EXPECT_EQ(pool_.Take(kDevice, 1, 3, 8).created.size(), 3u);
  EXPECT_EQ(pool_.DoomedIn(kDevice), 5u);
  EXPECT_TRUE(pool_.Reap(4));
  EXPECT_FALSE(pool_.Reap(4));
  EXPECT_EQ(driver_.Alive(0), 3);
}

TEST_F(PoolOfEight, TellsHostFromDevice) {
  EXPECT_EQ(pool_.Take(kHost, 1, 5, 100).created.size(), 4u);
  EXPECT_EQ(driver_.Alive(-1), 4);
  EXPECT_EQ(driver_.Alive(0), 0);
}

TEST_F(PoolOfEight, KeepsWhatItHasWhenTheDriverFailsMidway) {
  driver_.FailCreate(3, CUDA_ERROR_UNKNOWN);
  const Pool::Taken taken = pool_.Take(kDevice, 1, 5, 8);
  EXPECT_EQ(taken.created.size(), 2u);
  EXPECT_TRUE(absl::IsInternal(taken.status));
  EXPECT_EQ(pool_.ChunksIn(kDevice), 2u);
}

TEST(Pool, GivesEverythingBackAtItsEnd) {
  FakeDriver driver({8 * kChunk});
  {
    Pool pool(driver.table(), *ListDevices(driver.table()), kChunk, 1);
    pool.Take(kDevice, 1, 5, 8);
    EXPECT_EQ(driver.Alive(0), 5);
  }
  EXPECT_EQ(driver.Alive(0), 0);
}

}  // namespace
}  // namespace tidemark::daemon
