// Where requests that will last go: away from holes between buffers that will be gone.

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
    for (int i = 0; i < kLayers; ++i) ASSERT_NE(arena_.Allocate(kState), nullptr);
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
};

// Parameters and state fill 16 chunks; the first of a row are not told from others yet.
TEST_F(FirstStep, StateLeavesNoChunksAloneWhenGradientsAreFreed) {
  arena_.Free(arena_.Allocate(64 * kMiB));
  MakeState();
  Free(&gradients_);
  EXPECT_LE(ChunksInUse(), 16 + 5);
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

TEST(Lasting, IsNeitherSmallNorLarge) {
  Lasting lasting;
  for (const Bytes size : {kSmallLimit, kChunkBytes + kBlockBytes}) {
    for (int i = 0; i < 16; ++i) lasting.Made(size);
    EXPECT_FALSE(lasting.Lasts(size));
  }
  for (const Bytes size : {kSmallLimit + kBlockBytes, kChunkBytes}) {
    for (int i = 0; i < 16; ++i) lasting.Made(size);
    EXPECT_TRUE(lasting.Lasts(size));
  }
}

}  // namespace
}  // namespace tidemark::core
