// What the owner of an arena notices: when chunks are asked for, when free ones move instead, and
// what is left when the owner's side fails.

#include "core/arena.h"

#include <gtest/gtest.h>

#include "tests/core/counting_backend.h"

namespace tidemark::core {
namespace {

struct Fixture {
  explicit Fixture(ChunkIndex capacity, ArenaOptions options = {}) : backend(capacity) {
    ok = arena.Init(256, backend.Seam(), options);
  }
  bool Valid() const { return ok && arena.Validate() && !backend.misused(); }
  CountingBackend backend;
  Arena arena;
  bool ok;
};

TEST(Arena, MapsOnlyWhatARequestNeeds) {
  Fixture f(64);
  ASSERT_NE(f.arena.Allocate(5 * kMiB), nullptr);
  EXPECT_EQ(f.backend.held(), 3u);
  EXPECT_TRUE(f.Valid());
}

TEST(Arena, MovesFreeChunksUnderALargerRangeInsteadOfTakingMore) {
  Fixture f(64);
  Block* a = f.arena.Allocate(8 * kMiB);
  Block* keep = f.arena.Allocate(2 * kMiB);
  Block* b = f.arena.Allocate(8 * kMiB);
  f.arena.Free(a);
  f.arena.Free(b);
  ASSERT_NE(f.arena.Allocate(16 * kMiB), nullptr);
  EXPECT_EQ(f.backend.peak_held(), 9u);
  EXPECT_GT(f.arena.counters().stitched, 0u);
  EXPECT_EQ(f.arena.Find(keep->offset), keep);
  EXPECT_TRUE(f.Valid());
}

TEST(Arena, ServesARequestThatFillsTheCapacityOnceItsFencesHavePassed) {
  Fixture f(8);
  Block* a = f.arena.Allocate(6 * kMiB);
  Block* keep = f.arena.Allocate(2 * kMiB);
  f.arena.Free(a, 1, 5);
  EXPECT_NE(f.arena.Allocate(14 * kMiB), nullptr);
  EXPECT_EQ(f.backend.settled(), 5u);
  EXPECT_EQ(f.arena.Find(keep->offset), keep);
  EXPECT_TRUE(f.Valid());
}

TEST(Arena, SaysNoBeyondTheCapacityAndServesTheNextRequest) {
  Fixture f(8);
  EXPECT_EQ(f.arena.Allocate(17 * kMiB), nullptr);
  EXPECT_NE(f.arena.Allocate(16 * kMiB), nullptr);
  EXPECT_TRUE(f.Valid());
}

TEST(Arena, GivesIdleChunksBackByHalves) {
  Fixture f(64);
  Block* a = f.arena.Allocate(64 * kMiB);
  f.arena.Free(a);
  EXPECT_EQ(f.arena.Decay(), 0u) << "they were in use during the interval";
  EXPECT_EQ(f.arena.Decay(), 16u);
  EXPECT_EQ(f.arena.Decay(), 8u);
  EXPECT_EQ(f.arena.mapped(), 8u);
  EXPECT_TRUE(f.Valid());
}

}  // namespace
}  // namespace tidemark::core
