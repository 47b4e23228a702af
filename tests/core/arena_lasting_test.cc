// Where requests that will last go: away from holes between buffers that will be gone, and close to
// one another.

#include <gtest/gtest.h>

#include <vector>

#include "core/lasting.h"
#include "tests/core/counting_backend.h"

namespace tidemark::core {
namespace {

constexpr Bytes kState = 256 * kKiB;
constexpr int kLayers = 64;

// A training up to the first step of its optimizer: parameters, and gradients with a narrow hole
// beside each of them.
class FirstStep : public testing::Test {
 protected:
  FirstStep() {
    EXPECT_TRUE(arena_.Init(1 << 12, backend_.Seam()));
    Begin();
  }

  void Begin() {
    for (int i = 0; i < kLayers; ++i) parameters_.push_back(arena_.Allocate(kState));
    std::vector<Block*> temporaries;
    for (int i = 0; i < kLayers; ++i) {
      gradients_.push_back(arena_.Allocate(kChunkBytes - 320 * kKiB));
      temporaries.push_back(arena_.Allocate(320 * kKiB));
    }
    Free(&temporaries);
  }

  void Free(std::vector<Block*>* blocks) {
    for (Block* block : *blocks) arena_.Free(block);
    blocks->clear();
  }
  void MakeState() {
    for (int i = 0; i < kLayers; ++i) {
      state_.push_back(arena_.Allocate(kState));
      ASSERT_NE(state_.back(), nullptr);
    }
  }
  ChunkIndex ChunksInUse() {
    arena_.allocator().FoldCache();
    ChunkIndex used = 0;
    for (ChunkIndex i = 0; i < arena_.table().high_water(); ++i)
      used += arena_.table().live(i) != 0;
    return used;
  }

  CountingBackend backend_{1 << 12};
  Arena arena_;
  std::vector<Block*> parameters_;
  std::vector<Block*> gradients_;
  std::vector<Block*> state_;
};

// Parameters and state fill 16 chunks; the first of a row are not told from others yet.
TEST_F(FirstStep, StateLeavesNoChunksAloneWhenGradientsAreFreed) {
  arena_.Free(arena_.Allocate(64 * kMiB));
  MakeState();
  Free(&gradients_);
  EXPECT_LE(ChunksInUse(), 16 + 5);
  EXPECT_TRUE(arena_.Validate());
}

// The same for trainings that follow one another in a process.
TEST_F(FirstStep, OfLaterRunsLeavesNoChunksAloneEither) {
  for (int run = 0; run < 3; ++run) {
    if (run != 0) Begin();
    arena_.Free(arena_.Allocate(64 * kMiB));
    MakeState();
    Free(&gradients_);
    EXPECT_LE(ChunksInUse(), 16 + 8) << run;
    Free(&state_);
    Free(&parameters_);
  }
  EXPECT_TRUE(arena_.Validate());
}

TEST_F(FirstStep, SizesThatWereFreedOnceFillNarrowHoles) {
  arena_.Free(arena_.Allocate(64 * kMiB));
  arena_.Free(parameters_.back());
  parameters_.pop_back();
  const ChunkIndex before = ChunksInUse();
  MakeState();
  EXPECT_EQ(ChunksInUse(), before);
}

// Where no whole chunk is free, narrow holes are filled after a few new ones.
TEST_F(FirstStep, StateTakesNoMoreThanTwiceTheSlackToBeApart) {
  MakeState();
  const Bytes slack = arena_.sums().peak_requested() / 1000 * ArenaOptions().slack_permille;
  EXPECT_LE(Bytes{backend_.peak_held()} * kChunkBytes,
            arena_.sums().peak_requested() + 2 * slack + kChunkBytes);
}

TEST(Lasting, IsWhatComesInARowAndNeverEnded) {
  Lasting lasting;
  for (int i = 0; i < 8; ++i) {
    EXPECT_FALSE(lasting.Lasts(kState));
    lasting.Made(kState);
  }
  EXPECT_TRUE(lasting.Lasts(kState));
  EXPECT_FALSE(lasting.Lasts(2 * kState));
  lasting.Freed(64 * kMiB);
  EXPECT_FALSE(lasting.Lasts(kState));
  for (int i = 0; i < 4; ++i) lasting.Made(kState);
  EXPECT_TRUE(lasting.Lasts(kState));
  lasting.Freed(kState);
  for (int i = 0; i < 16; ++i) lasting.Made(kState);
  EXPECT_FALSE(lasting.Lasts(kState));
}

TEST(Lasting, IsNotSmall) {
  Lasting lasting;
  for (const Bytes size : {kSmallLimit, kSmallLimit + kBlockBytes, 64 * kMiB}) {
    for (int i = 0; i < 16; ++i) lasting.Made(size);
    EXPECT_EQ(lasting.Lasts(size), size > kSmallLimit);
  }
}

// A job that brings new sizes in each iteration.
TEST(Lasting, IsNotBelievedAfterManySizesThatDidNotLast) {
  Lasting lasting;
  Bytes size = kMiB;
  int believed = 0;
  for (; believed < 1000; ++believed) {
    size += kBlockBytes;
    for (int i = 0; i < 8; ++i) lasting.Made(size);
    if (!lasting.Lasts(size)) break;
    lasting.Taken(size);
    lasting.Freed(size);
  }
  EXPECT_GE(believed, 8);
  EXPECT_LE(believed, 16);
}

// Large state beside gradients that are gone when the next step begins.
TEST(LastingState, LiesTogetherWhenItIsLarge) {
  constexpr Bytes kLarge = 5 * kMiB / 2;
  CountingBackend backend(1 << 12);
  Arena arena;
  ASSERT_TRUE(arena.Init(1 << 12, backend.Seam()));
  std::vector<Block*> gradients, temporaries;
  for (int i = 0; i < kLayers; ++i) {
    gradients.push_back(arena.Allocate(3 * kMiB - 64 * kKiB));
    temporaries.push_back(arena.Allocate(kLarge + 64 * kKiB));
  }
  for (Block* block : temporaries) arena.Free(block);
  arena.Free(arena.Allocate(256 * kMiB));
  for (int i = 0; i < kLayers; ++i) ASSERT_NE(arena.Allocate(kLarge), nullptr);
  for (Block* block : gradients) arena.Free(block);
  arena.allocator().FoldCache();
  ChunkIndex used = 0;
  for (ChunkIndex i = 0; i < arena.table().high_water(); ++i) used += arena.table().live(i) != 0;
  EXPECT_LE(used, kLayers * kLarge / kChunkBytes + 12);  // the first ones lie anywhere
  EXPECT_TRUE(arena.Validate());
}

// Of these, only one in four is whole chunks: to begin each of them on a chunk loses one in fifty.
TEST(LastingState, WeightsThatAJobBeginsWithShareTheirChunks) {
  CountingBackend backend(1 << 12);
  Arena arena;
  ASSERT_TRUE(arena.Init(1 << 12, backend.Seam()));
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const Bytes size : {16220 * kKiB, 5408 * kKiB, 26 * kMiB, 13 * kMiB}) {
      ASSERT_NE(arena.Allocate(size), nullptr);
    }
  }
  const Bytes demand = arena.sums().requested();
  EXPECT_LE(Bytes{backend.held()} * kChunkBytes, demand + demand / 250);
}

}  // namespace
}  // namespace tidemark::core
