// The index of holes against a sorted map, over random holes that come, change and go.

#include "core/hole_index.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace tidemark::core {
namespace {

class HoleIndexTest : public testing::Test {
 protected:
  static constexpr size_t kCells = 3000;  // of 64 KiB; a hole begins in each at most once

  HoleIndexTest() : blocks_(kCells) { EXPECT_TRUE(index_.Reserve(kCells)); }

  void Toggle() {
    const size_t cell = random_() % kCells;
    Block* block = &blocks_[cell];
    if (holes_.erase(cell) != 0) return index_.Remove(block);
    block->offset = Bytes{cell} * 64 * kKiB;
    block->size = kBlockBytes * (1 + random_() % 100);
    holes_[cell] = block;
    index_.Add(block);
  }

  void Change() {
    const auto it = holes_.lower_bound(random_() % kCells);
    if (it == holes_.end()) return;
    const HoleIndex::Place place = index_.Locate(it->second->offset);
    it->second->offset += kBlockBytes * (random_() % 3);
    it->second->size = kBlockBytes * (1 + random_() % 100);
    index_.Replace(place, it->second);
  }

  std::vector<Block*> Expected(Bytes least) const {
    std::vector<Block*> all;
    for (const auto& [cell, block] : holes_) {
      if (block->size >= least) all.push_back(block);
    }
    return all;
  }
  std::vector<Block*> Found(Bytes least) {
    std::vector<Block*> all;
    HoleIndex::Search search(&index_, least);
    while (Block* block = search.Next()) all.push_back(block);
    return all;
  }

  std::vector<const Block*> ExpectedBelow(Bytes end, Bytes least) const {
    std::vector<const Block*> all;
    for (auto it = holes_.rbegin(); it != holes_.rend(); ++it) {
      if (it->second->offset < end && it->second->size >= least) all.push_back(it->second);
    }
    return all;
  }
  std::vector<const Block*> FoundBelow(Bytes end, Bytes least) {
    std::vector<const Block*> all;
    HoleIndex::SearchDown search(&index_, least, end);
    while (const Block* block = search.Next()) all.push_back(block);
    return all;
  }

  std::mt19937 random_{1};
  std::vector<Block> blocks_;
  std::map<size_t, Block*> holes_;
  HoleIndex index_;
};

TEST_F(HoleIndexTest, FindsEveryHoleThatIsLongEnoughInAddressOrder) {
  for (int i = 0; i < 20000; ++i) {
    // It fills up, empties, and stays in between.
    const bool grow = holes_.size() < (i < 8000 ? 2500u : i < 14000 ? 3u : 300u);
    do {
      Toggle();
    } while (grow && random_() % 4 == 0);
    Change();
    if (i % 50 != 0) continue;
    ASSERT_TRUE(index_.Validate(holes_.size()));
    const Bytes least = kBlockBytes * (1 + random_() % 110);
    ASSERT_EQ(Found(least), Expected(least));
    const Bytes end = random_() % (kCells * 64 * kKiB + 1);
    ASSERT_EQ(FoundBelow(end, least), ExpectedBelow(end, least));
  }
}

TEST_F(HoleIndexTest, CountsTheChunksThatLieWhollyInHolesAndKnowsWhetherOneOfThemWaits) {
  Bytes end = 0;
  for (Block& block : blocks_) {
    block.offset = end + kBlockBytes * (random_() % 4096);
    block.size = kBlockBytes * (1 + random_() % 16384);
    end = block.end();
  }
  std::set<Block*> holes;
  FenceId passed = 0;
  int waits = 0;
  for (FenceId i = 0; i < 10000; ++i) {
    Block& block = blocks_[random_() % (i < 5000 ? blocks_.size() : 20)];
    if (holes.erase(&block) != 0) {
      index_.Remove(&block);
    } else {
      block.fence = i;
      holes.insert(&block);
      index_.Add(&block);
    }
    if (random_() % 4 == 0) passed = i - random_() % std::min<FenceId>(i + 1, 40);
    ChunkIndex all = 0;
    bool wait = false;
    for (const Block* hole : holes) {
      const Bytes first = RoundUp(hole->offset, kChunkBytes) / kChunkBytes;
      if (hole->end() / kChunkBytes <= first) continue;
      all += static_cast<ChunkIndex>(hole->end() / kChunkBytes - first);
      wait = wait || hole->fence > passed;
    }
    ASSERT_EQ(index_.whole_chunks(), all);
    ASSERT_EQ(index_.WholeChunksWait(passed), wait);
    waits += wait ? 1 : 0;
  }
  ASSERT_TRUE(index_.Validate(holes.size()));
  EXPECT_GT(waits, 100);
  EXPECT_LT(waits, 9900);
}

TEST_F(HoleIndexTest, KnowsWhatFollows) {
  for (int i = 0; i < 500; ++i) Toggle();
  for (auto it = holes_.begin(); std::next(it) != holes_.end(); ++it) {
    const HoleIndex::Place next = index_.After(index_.Locate(it->second->offset));
    index_.Replace(next, std::next(it)->second);
    const HoleIndex::Place located = index_.Locate(std::next(it)->second->offset);
    ASSERT_EQ(next.group, located.group);
    ASSERT_EQ(next.slot, located.slot);
  }
  EXPECT_TRUE(index_.Validate(holes_.size()));
}

TEST_F(HoleIndexTest, IsUsableAgainAfterTheLastHoleWent) {
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) Toggle();
    while (!holes_.empty()) {
      index_.Remove(holes_.begin()->second);
      holes_.erase(holes_.begin());
    }
    ASSERT_TRUE(index_.Validate(0));
    ASSERT_TRUE(Found(kBlockBytes).empty());
  }
}

}  // namespace
}  // namespace tidemark::core
