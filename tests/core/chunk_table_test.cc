// Which chunk is evicted next, and that the counters add up.

#include "core/chunk_table.h"

#include <gtest/gtest.h>

namespace tidemark::core {
namespace {

class ChunkTableTest : public testing::Test {
 protected:
  ChunkTableTest() {
    EXPECT_TRUE(table_.Init(16));
    for (ChunkIndex i = 0; i < 4; ++i) {
      table_.SetState(i, ChunkState::kDevice);
      table_.AddLive(i);
      table_.NoteUse(i, 10 - i);
    }
  }
  ~ChunkTableTest() override { EXPECT_TRUE(table_.Validate()); }
  ChunkTable table_;
};

TEST_F(ChunkTableTest, EvictsTheLeastRecentlyUsedChunkFirst) {
  EXPECT_EQ(table_.Victim(100), 3u);
  table_.NoteUse(3, 50);
  EXPECT_EQ(table_.Victim(100), 2u);
}

TEST_F(ChunkTableTest, EvictsWhatIsUsedFarthestInTheFutureWhereThatIsForeseen) {
  table_.ForeseeUse(0, 5);
  table_.ForeseeUse(1, 70);
  table_.ForeseeUse(2, 9);
  table_.ForeseeUse(2, 30);
  table_.ForeseeUse(3, 20);
  ChunkIndex list[8];
  ASSERT_EQ(table_.Victims(100, list, 8), 4u);
  EXPECT_EQ(list[0], 1u);
  EXPECT_EQ(list[1], 3u);
  EXPECT_EQ(list[2], 2u) << "its nearest use counts";
  EXPECT_EQ(list[3], 0u);
  ASSERT_EQ(table_.Victims(100, list, 2), 2u);
  EXPECT_EQ(list[1], 3u);
  table_.HoldBack(1, true);
  EXPECT_EQ(table_.Victim(100), 3u) << "policy wants the other one on the device";
  table_.ForgetNextUses();
  table_.HoldBack(1, false);
  EXPECT_EQ(table_.Victim(100), 3u) << "least recently used again";
}

TEST_F(ChunkTableTest, NeverEvictsPinnedEmptyOrHostChunks) {
  table_.Pin(3, PinReason::kIpc);
  EXPECT_EQ(table_.Victim(100), 2u);
  table_.SetState(2, ChunkState::kHost);
  EXPECT_EQ(table_.Victim(100), 1u);
  EXPECT_TRUE(table_.DropLive(1));
  EXPECT_EQ(table_.Victim(100), 0u);
  EXPECT_TRUE(table_.Unpin(3, PinReason::kIpc));
  EXPECT_EQ(table_.Victim(100), 3u);
}

TEST_F(ChunkTableTest, SparesWhatTheRunningLaunchTouches) {
  EXPECT_EQ(table_.Victim(9), 3u);
  EXPECT_EQ(table_.Victim(7), table_.size());
}

TEST_F(ChunkTableTest, CountersDoNotUnderflow) {
  EXPECT_TRUE(table_.DropLive(0));
  EXPECT_FALSE(table_.DropLive(0));
  EXPECT_FALSE(table_.Unpin(0, PinReason::kGraph));
  EXPECT_EQ(table_.pinned_chunks(), 0u);
}

TEST_F(ChunkTableTest, CountsPinnedChunksOnceForAllReasons) {
  table_.Pin(1, PinReason::kIpc);
  table_.Pin(1, PinReason::kGraph);
  EXPECT_EQ(table_.pinned_chunks(), 1u);
  table_.UnpinAll(1);
  EXPECT_EQ(table_.pinned_chunks(), 0u);
}

}  // namespace
}  // namespace tidemark::core
