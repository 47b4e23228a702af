// What a user of the arena notices: where buffers lie, what is reused, what must be waited for.

#include "core/arena_allocator.h"

#include <gtest/gtest.h>

#include "tests/core/arena_harness.h"

namespace tidemark::core {
namespace {

TEST(ArenaAllocator, MapsNothingByItself) {
  ArenaHarness h(16, 16);
  EXPECT_EQ(h.arena().Allocate({kMiB}), nullptr);
  Extension extension;
  ASSERT_TRUE(h.arena().PlanExtension(5 * kMiB, &extension));
  EXPECT_EQ(extension.first, 0u);
  EXPECT_EQ(extension.missing, 3u);
  EXPECT_EQ(h.table().device_chunks(), 0u);
}

TEST(ArenaAllocator, NeighboursShareTheirBoundaryChunk) {
  ArenaHarness h(16, 16);
  Block* a = h.Allocate(3 * kMiB);
  Block* b = h.Allocate(3 * kMiB);
  EXPECT_EQ(a->end(), b->offset);
  EXPECT_EQ(h.table().device_chunks(), 3u);
  EXPECT_EQ(h.table().live(1), 2u);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, LargeBuffersStartOnChunks) {
  ArenaHarness h(64, 64);
  h.Allocate(3 * kMiB);
  Block* large = h.Allocate(32 * kMiB);
  EXPECT_EQ(large->offset % kChunkBytes, 0u);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, SmallBuffersShareOneSlab) {
  ArenaHarness h(16, 16);
  Block* first = h.Allocate(1);
  for (int i = 0; i < 1000; ++i) h.Allocate(700);
  EXPECT_EQ(first->size, kBlockBytes);
  EXPECT_EQ(h.table().device_chunks(), 1u);
  EXPECT_EQ(h.arena().Stats(0).slabs, 1u);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, EmptySlabBecomesAPlainChunk) {
  ArenaHarness h(16, 1);
  Block* small = h.Allocate(100);
  EXPECT_EQ(h.Allocate(2 * kMiB), nullptr);
  h.Free(small);
  EXPECT_NE(h.Allocate(2 * kMiB), nullptr);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, SmallBufferUsesAnyHoleBeforeItFails) {
  ArenaHarness h(16, 2);
  EXPECT_NE(h.Allocate(3 * kMiB), nullptr);
  EXPECT_NE(h.Allocate(512 * kKiB), nullptr);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, ReusesTheExactSizeAtOnce) {
  ArenaHarness h(64, 64);
  Block* a = h.Allocate(5 * kMiB);
  h.Allocate(kMiB * 3);
  const Bytes offset = a->offset;
  h.Free(a);
  EXPECT_EQ(h.Allocate(5 * kMiB)->offset, offset);
}

TEST(ArenaAllocator, PrefersHolesWithoutAFence) {
  ArenaHarness h(64, 64);
  Block* a = h.Allocate(4 * kMiB);
  h.Allocate(3 * kMiB);
  Block* b = h.Allocate(4 * kMiB);
  h.Allocate(3 * kMiB);
  const Bytes unfenced = b->offset;
  h.Free(a, 9);
  h.Free(b, 0);
  h.arena().FoldCache();
  EXPECT_EQ(h.Allocate(4 * kMiB)->offset, unfenced);
  Block* second = h.Allocate(4 * kMiB);
  EXPECT_EQ(second->fence, 9u);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, MergedHolesCarryTheLaterFence) {
  ArenaHarness h(64, 64);
  Block* a = h.Allocate(4 * kMiB);
  Block* b = h.Allocate(4 * kMiB);
  h.Free(a, 3);
  h.Free(b, 5);
  EXPECT_EQ(h.Allocate(8 * kMiB)->fence, 5u);
  EXPECT_EQ(h.table().device_chunks(), 4u);
}

TEST(ArenaAllocator, StitchesFreeChunksFromElsewhere) {
  ArenaHarness h(64, 6);
  Block* a = h.Allocate(4 * kMiB);
  Block* keep = h.Allocate(4 * kMiB);
  Block* c = h.Allocate(4 * kMiB);
  h.Free(a);
  h.Free(c);
  Block* d = h.Allocate(8 * kMiB);
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(h.table().device_chunks(), 6u);
  EXPECT_NE(d->offset, keep->offset);
  EXPECT_TRUE(h.Valid());
}

TEST(ArenaAllocator, FindsTheBufferOfAnInteriorAddress) {
  ArenaHarness h(64, 64);
  Block* small = h.Allocate(1000);
  Block* large = h.Allocate(40 * kMiB);
  EXPECT_EQ(h.arena().Find(small->offset + 999), small);
  EXPECT_EQ(h.arena().Find(large->offset + 33 * kMiB), large);
  EXPECT_EQ(h.arena().Find(large->end() + kChunkBytes), nullptr);
  h.Free(large);
  EXPECT_EQ(h.arena().Find(large->offset + 33 * kMiB), nullptr);
}

TEST(ArenaAllocator, RefusesMoreThanTheArenaAndStaysWhole) {
  ArenaHarness h(8, 8);
  EXPECT_EQ(h.Allocate(17 * kMiB), nullptr);
  EXPECT_EQ(h.Allocate(~Bytes{0}), nullptr);
  EXPECT_NE(h.Allocate(16 * kMiB), nullptr);
  EXPECT_EQ(h.Allocate(1), nullptr);
  EXPECT_TRUE(h.Valid());
}

}  // namespace
}  // namespace tidemark::core
