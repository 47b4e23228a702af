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

// A gap of 16 MiB whose chunks were moved to 19 MiB that are free again, and two live blocks whose
// chunks are used in part. Chunks: 12, two of them in use.
void LeaveAGap(Fixture* f) {
  Block* a = f->arena.Allocate(5 * kMiB);
  ASSERT_NE(f->arena.Allocate(kMiB), nullptr);
  Block* b = f->arena.Allocate(16 * kMiB);
  ASSERT_EQ(b->offset, 6 * kMiB);
  ASSERT_NE(f->arena.Allocate(kMiB), nullptr);
  f->arena.Free(a);
  f->arena.Free(b);
  Block* c = f->arena.Allocate(19 * kMiB);
  ASSERT_NE(c, nullptr);
  ASSERT_EQ(f->arena.counters().stitched, 9u);
  f->arena.Free(c);
  f->arena.Release(0);  // it is not kept apart for a request of its size
}

TEST(Arena, MovesChunksBackUnderAGapThatFitsWhereTooMuchIsLostInParts) {
  Fixture f(64, {0});
  LeaveAGap(&f);
  const Block* again = f.arena.Allocate(16 * kMiB);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->offset, 6 * kMiB);
  EXPECT_EQ(f.arena.counters().chosen, 1u);
  EXPECT_EQ(f.backend.peak_held(), 12u);
  EXPECT_TRUE(f.Valid());
}

TEST(Arena, LooksForABetterPlaceOnlyWhereMoreIsLostThanTheSlackAllows) {
  for (const uint32_t slack_permille : {0u, 500u}) {
    Fixture f(16, {slack_permille});
    Block* a = f.arena.Allocate(16 * kMiB);
    ASSERT_NE(f.arena.Allocate(kMiB), nullptr);
    f.arena.Free(a);
    ASSERT_NE(f.arena.Allocate(30 * kMiB), nullptr);
    ASSERT_GT(f.arena.counters().stitched, 0u);
    ASSERT_NE(f.arena.Allocate(kMiB), nullptr);
    EXPECT_EQ(f.arena.counters().chosen, slack_permille == 0 ? 1u : 0u);
    EXPECT_TRUE(f.Valid());
  }
}

TEST(Arena, ABetterPlaceThatCannotBeMappedLeavesTheRequestWhereItWouldHaveBeen) {
  Fixture f(64, {0});
  LeaveAGap(&f);
  f.backend.FailCall(f.backend.calls() + 1);  // after the unmap
  EXPECT_NE(f.arena.Allocate(16 * kMiB), nullptr);
  EXPECT_EQ(f.arena.counters().chosen, 0u);
  EXPECT_EQ(f.backend.peak_held(), 12u);
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

// An owner that acquires, evicts and has host memory.
struct FullFixture {
  FullFixture(ChunkIndex capacity, ChunkIndex host) : backend(capacity) {
    ok = arena.Init(256, backend.FullSeam(&arena, host));
  }
  bool Valid() const { return ok && arena.Validate() && !backend.misused(); }
  bool OnHost(const Block* block) const { return arena.OnHost(block); }
  CountingBackend backend;
  Arena arena;
  bool ok;
};

TEST(ArenaWithHost, AcquiresOnlyWhatFreeChunksBeyondTheSlackCannotGive) {
  FullFixture f(64, 0);
  Block* a = f.arena.Allocate(8 * kMiB);
  f.arena.Allocate(2 * kMiB);
  Block* b = f.arena.Allocate(8 * kMiB);
  f.arena.Free(a);
  f.arena.Free(b);
  ASSERT_NE(f.arena.Allocate(16 * kMiB), nullptr);
  EXPECT_EQ(f.backend.peak_held(), 9u);
  EXPECT_TRUE(f.Valid());
}

// Two gaps of four chunks each around a live buffer, the lower one with work of stream 1 in flight.
void LeaveGapsInFlight(FullFixture* f) {
  Block* a = f->arena.Allocate(8 * kMiB, 1);
  f->arena.Allocate(2 * kMiB, 1);
  Block* b = f->arena.Allocate(8 * kMiB, 1);
  f->arena.Free(a, 1, 3);
  f->arena.Free(b);
}

TEST(ArenaWithHost, MovesWhatIsFreeBehindAFenceAndOrdersWorkInsteadOfWaiting) {
  FullFixture f(9, 16);
  LeaveGapsInFlight(&f);
  const Block* c = f.arena.Allocate(16 * kMiB, 1);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(f.arena.counters().aliased, 4u);
  EXPECT_EQ(f.arena.counters().settled_fences, 0u);
  EXPECT_EQ(f.backend.on_host(), 0u);
  EXPECT_EQ(f.backend.ordered_fence(), 3u) << "even for the same stream, at another address";
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, NobodyGetsTheOldPlaceOfAMovedChunkBeforeItsFence) {
  FullFixture f(12, 0);
  LeaveGapsInFlight(&f);
  Block* c = f.arena.Allocate(22 * kMiB, 1);
  ASSERT_NE(c, nullptr);
  ASSERT_EQ(f.arena.counters().aliased, 4u);
  f.arena.Free(c, 1, 5);
  const Block* d = f.arena.Allocate(6 * kMiB, 1);
  EXPECT_GE(d->offset, 10 * kMiB);
  f.arena.Passed(5);
  f.arena.LeaveOldPlaces();
  EXPECT_TRUE(f.Valid());
  ASSERT_EQ(f.arena.Release(64), 8u);
  EXPECT_EQ(f.arena.Allocate(8 * kMiB, 1)->offset, 0u);
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, TakesALittleBeyondTheSlackBeforeItMovesWhatIsInFlight) {
  FullFixture f(64, 0);
  LeaveGapsInFlight(&f);
  ASSERT_NE(f.arena.Allocate(16 * kMiB, 1), nullptr);
  EXPECT_EQ(f.arena.counters().aliased, 0u);
  EXPECT_EQ(f.backend.held(), 13u);
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, EvictsNoMoreThanARequestLacks) {
  FullFixture f(8, 16);
  const Block* a = f.arena.Allocate(8 * kMiB);
  const Block* b = f.arena.Allocate(6 * kMiB);
  const Block* c = f.arena.Allocate(6 * kMiB);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(f.backend.on_host(), 2u);
  EXPECT_TRUE(f.OnHost(a));
  EXPECT_FALSE(f.OnHost(b));
  EXPECT_FALSE(f.OnHost(c));
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, EvictsNothingWhereWaitingForFencesIsEnough) {
  FullFixture f(8, 16);
  f.arena.Allocate(4 * kMiB);
  Block* b = f.arena.Allocate(12 * kMiB);
  f.arena.Free(b, 1, 3);
  ASSERT_NE(f.arena.Allocate(10 * kMiB, 2), nullptr);
  EXPECT_EQ(f.backend.on_host(), 0u);
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, ARequestAboveTheCapacityLiesPartlyInHostMemory) {
  FullFixture f(4, 16);
  Block* block = f.arena.Allocate(20 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(f.backend.mapped(), 4u);
  EXPECT_EQ(f.backend.on_host(), 6u);
  EXPECT_EQ(f.arena.counters().on_host, 6u);
  EXPECT_EQ(f.arena.Allocate(30 * kMiB), nullptr) << "more than device and host hold";
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, NoBufferIsPlacedWhereAFormerOneLeftItsBytesOnTheHost) {
  FullFixture f(5, 8);
  Block* a = f.arena.Allocate(8 * kMiB);
  f.arena.Allocate(2 * kMiB);
  Block* b = f.arena.Allocate(8 * kMiB);
  ASSERT_TRUE(f.OnHost(a));
  f.arena.Free(a, 1, 7);
  f.arena.Free(b);
  const Block* c = f.arena.Allocate(8 * kMiB);
  ASSERT_NE(c, nullptr);
  EXPECT_FALSE(f.OnHost(c));
  f.arena.Passed(7);
  f.arena.ReleaseHost();
  EXPECT_EQ(f.backend.on_host(), 0u) << "wholly free chunks on the host serve nobody";
  EXPECT_TRUE(f.Valid());
}

TEST(ArenaWithHost, OthersMayAllocateAndFreeWhileChunksAreWaitedFor) {
  FullFixture f(64, 0);
  Block* a = f.arena.Allocate(10 * kMiB);
  const Block* other = nullptr;
  f.backend.during_acquire = [&] {
    f.arena.Free(a);
    other = f.arena.Allocate(24 * kMiB);
  };
  const Block* block = f.arena.Allocate(16 * kMiB);
  ASSERT_NE(block, nullptr);
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(block->end() <= other->offset || other->end() <= block->offset);
  EXPECT_TRUE(f.Valid());
}

}  // namespace
}  // namespace tidemark::core
