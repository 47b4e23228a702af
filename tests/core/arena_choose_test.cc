// The place that does the least harm against all places, one by one, in arenas where anything may
// lie anywhere.

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <vector>

#include "core/arena_allocator.h"

namespace tidemark::core {
namespace {

uint64_t Logarithm(uint64_t value) {
  const int power = std::bit_width(value) - 1;
  return static_cast<uint64_t>(power) * 16 + ((value - (uint64_t{1} << power)) * 16 >> power);
}

class ArenaChoose : public testing::Test {
 protected:
  static constexpr ChunkIndex kChunks = 96;

  ArenaChoose() { EXPECT_TRUE(table_.Init(kChunks) && arena_.Init(&table_)); }

  // Not so close to whole chunks that it would be put on one.
  Bytes Size() {
    const Bytes whole = random_() % 4 == 0 ? random_() % 8 : random_() % 2;
    return whole * kChunkBytes + (1 + random_() % 24) * 64 * kKiB;
  }

  void Map() {
    const auto chunk = static_cast<ChunkIndex>(random_() % kChunks);
    const bool maps = table_.state(chunk) == ChunkState::kUnmapped;
    if (!(maps ? arena_.MarkMapped(chunk) : arena_.MarkUnmapped(chunk))) return;
    table_.SetState(chunk, maps ? ChunkState::kDevice : ChunkState::kUnmapped);
  }

  void Change() {
    switch (random_() % 4) {
      case 0:
        return Map();
      case 1:
        if (Block* block = arena_.Allocate({Size()})) live_.push_back(block);
        return;
      case 2: {
        const Bytes place = arena_.ChoosePlace({Size()}, 0);
        if (place == ArenaAllocator::kNowhere) return;
        if (Block* block = arena_.AllocateAt({Size()}, place)) live_.push_back(block);
        return;
      }
      default:
        if (live_.empty()) return;
        std::swap(live_[random_() % live_.size()], live_.back());
        arena_.Free(live_.back(), 0);
        live_.pop_back();
    }
  }

  bool Kept(Bytes offset, Bytes size) const {
    for (ChunkIndex i = ChunkOf(offset); i <= LastChunkOf(offset, size); ++i) {
      if (i - arena_.kept_first() < arena_.kept_count()) return true;
    }
    return false;
  }

  void Consider(Bytes offset, Bytes size, Bytes run, ChunkIndex chunks) {
    if (Kept(offset, size)) return;
    ChunkIndex taken = 0;
    ChunkIndex missing = 0;
    for (ChunkIndex i = ChunkOf(offset); i <= LastChunkOf(offset, size); ++i) {
      if (table_.live(i) == 0) ++taken;
      if (table_.state(i) == ChunkState::kUnmapped) ++missing;
    }
    if (taken > chunks) return;
    const uint64_t harm =
        taken * 80 + Logarithm((run - size + kChunkBytes) / kBlockBytes) + Logarithm(missing + 1);
    if (harm > harm_ || (harm == harm_ && offset > place_)) return;
    harm_ = harm;
    place_ = offset;
  }

  static bool IsFree(const Block* b) { return b != nullptr && b->state == Block::State::kFree; }

  Bytes Expected(Bytes size, ChunkIndex fresh) {
    harm_ = ~uint64_t{0};
    place_ = ArenaAllocator::kNowhere;
    ChunkIndex chunks = fresh;
    for (const Block* b = arena_.first(); b != nullptr; b = b->next) {
      if (!IsFree(b) || !b->mapped) continue;
      if (b->size == size && !Kept(b->offset, size)) return b->offset;
      chunks += b->WholeChunks();
    }
    for (const Block* b = arena_.first(); b != nullptr; b = b->next) {
      if (!IsFree(b)) continue;
      const Block* low = b;
      const Block* high = b;
      while (IsFree(low->previous)) low = low->previous;
      while (IsFree(high->next)) high = high->next;
      const Bytes run = high->end() - low->offset;
      if (b->offset + size <= high->end()) Consider(b->offset, size, run, chunks);
      const bool last = b->next == nullptr;
      if (!last && low->offset + size <= b->end()) Consider(b->end() - size, size, run, chunks);
    }
    return place_;
  }

  std::mt19937 random_{7};
  ChunkTable table_;
  ArenaAllocator arena_;
  std::vector<Block*> live_;
  uint64_t harm_ = 0;
  Bytes place_ = 0;
};

TEST_F(ArenaChoose, FindsTheBestOfAllPlaces) {
  int found = 0;
  int missing = 0;
  for (int i = 0; i < 40000; ++i) {
    Change();
    if (i % 10 == 0) {
      const auto first = static_cast<ChunkIndex>(random_() % kChunks);
      arena_.KeepFree(first, static_cast<ChunkIndex>(random_() % 4));
    }
    const Bytes size = Size();
    const auto fresh = static_cast<ChunkIndex>(random_() % 4);
    arena_.FoldCache();
    const Bytes expected = Expected(size, fresh);
    ASSERT_EQ(arena_.ChoosePlace({size}, fresh), expected) << "step " << i << ", " << size;
    ASSERT_TRUE(i % 200 != 0 || arena_.Validate());
    ++(expected == ArenaAllocator::kNowhere ? missing : found);
  }
  EXPECT_GT(found, 1000);
  EXPECT_GT(missing, 100);
}

}  // namespace
}  // namespace tidemark::core
