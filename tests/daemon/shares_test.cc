#include "daemon/shares.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tidemark::daemon {
namespace {

tm_wire_share Part(uint8_t token, uint32_t first, uint32_t count, uint32_t total) {
  tm_wire_share part = {};
  std::memset(part.token, token, sizeof(part.token));
  part.first = first;
  part.count = count;
  part.total = total;
  for (uint32_t i = 0; i < count; ++i) part.chunk_id[i] = 100 * token + first + i;
  return part;
}

TEST(Shares, OpenInPartsOnceComplete) {
  Shares shares;
  ASSERT_TRUE(shares.Publish(1, 1000, Part(1, 0, 3, 5)).ok());
  const ShareToken token = TokenOf(Part(1, 0, 0, 0));
  EXPECT_TRUE(absl::IsNotFound(shares.Open(token, 1000, 0, 5).status()));
  ASSERT_TRUE(shares.Publish(1, 1000, Part(1, 3, 2, 5)).ok());
  EXPECT_EQ(*shares.Open(token, 1000, 0, 4), (std::vector<ChunkId>{100, 101, 102, 103}));
  EXPECT_EQ(*shares.Open(token, 1000, 4, 64), (std::vector<ChunkId>{104}));
  EXPECT_TRUE(absl::IsNotFound(shares.Open(token, 1000, 5, 1).status()));
}

TEST(Shares, RefuseForeignUsersAndStolenTokens) {
  Shares shares;
  ASSERT_TRUE(shares.Publish(1, 1000, Part(1, 0, 1, 1)).ok());
  EXPECT_TRUE(
      absl::IsPermissionDenied(shares.Open(TokenOf(Part(1, 0, 0, 0)), 2000, 0, 1).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(shares.Publish(2, 1000, Part(1, 0, 1, 1))));
  EXPECT_TRUE(absl::IsAlreadyExists(shares.Publish(1, 1000, Part(1, 0, 1, 1))));
}

TEST(Shares, RefusePartsOutOfOrder) {
  Shares shares;
  EXPECT_TRUE(absl::IsFailedPrecondition(shares.Publish(1, 1000, Part(1, 1, 1, 2))));
  ASSERT_TRUE(shares.Publish(1, 1000, Part(1, 0, 1, 3)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(shares.Publish(1, 1000, Part(1, 1, 1, 4))));
  EXPECT_TRUE(absl::IsFailedPrecondition(shares.Publish(1, 1000, Part(1, 0, 1, 3))));
}

TEST(Shares, EndWithTheirChunksAndTheirJob) {
  Shares shares;
  ASSERT_TRUE(shares.Publish(1, 1000, Part(1, 0, 2, 2)).ok());
  ASSERT_TRUE(shares.Publish(1, 1000, Part(2, 0, 2, 2)).ok());
  ASSERT_TRUE(shares.Publish(2, 1000, Part(3, 0, 2, 2)).ok());
  shares.DropChunk(2, 101);  // not its exporter
  EXPECT_EQ(shares.size(), 3u);
  shares.DropChunk(1, 101);
  EXPECT_EQ(shares.size(), 2u);
  shares.DropJob(1);
  EXPECT_EQ(shares.size(), 1u);
  EXPECT_TRUE(shares.Open(TokenOf(Part(3, 0, 0, 0)), 1000, 0, 2).ok());
}

}  // namespace
}  // namespace tidemark::daemon
