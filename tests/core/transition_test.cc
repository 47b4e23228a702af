// The change to a plan, played ahead, against brute force over times and chunks.

#include "core/transition.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tidemark::core {
namespace {

constexpr uint32_t kTimes = 40;
constexpr ChunkIndex kChunks = 24;
constexpr uint32_t kChunkUnits = kChunkBytes / kBlockBytes;

TEST(Transition, CountsWhatStaysUntilItIsFreedBesideWhatComes) {
  Transition transition;
  ASSERT_TRUE(transition.Begin(8));
  for (ChunkIndex i = 0; i < 4; ++i) transition.SetLive(i, 1);
  ASSERT_TRUE(transition.Free(5, 0, 3));
  ASSERT_TRUE(transition.Use(4, 9, 4, 7));  // both at once
  EXPECT_EQ(transition.MostInUse().likely, 8u);
}

TEST(Transition, LetsARequestHaveWhatIsFreedBeforeIt) {
  Transition transition;
  ASSERT_TRUE(transition.Begin(8));
  for (ChunkIndex i = 0; i < 4; ++i) transition.SetLive(i, 1);
  ASSERT_TRUE(transition.Free(5, 0, 3));
  ASSERT_TRUE(transition.Use(5, 9, 4, 7));
  ASSERT_TRUE(transition.UseElsewhere(7, 8, 2 * kChunkUnits));
  ASSERT_TRUE(transition.UseElsewhere(7, 9, kChunkUnits / 2));
  const Transition::InUse most = transition.MostInUse();
  EXPECT_EQ(most.likely, 4u + 3);
  EXPECT_EQ(most.at_worst, 4u + 3 + 2) << "each may have a chunk more";
}

TEST(Transition, AgreesWithBruteForce) {
  std::mt19937 random(1);
  for (int run = 0; run < 300; ++run) {
    Transition transition;
    ASSERT_TRUE(transition.Begin(kChunks));
    std::vector<std::vector<uint32_t>> live(kTimes, std::vector<uint32_t>(kChunks));
    std::vector<uint64_t> elsewhere(kTimes), at_worst(kTimes);
    std::vector<uint32_t> at_first(kChunks);
    for (int i = 0; i < 20; ++i) {
      const ChunkIndex first = random() % kChunks;
      const ChunkIndex last = std::min<ChunkIndex>(kChunks - 1, first + random() % 5);
      const uint32_t kind = random() % 3;
      const uint32_t begin = kind == 0 ? 0 : random() % kTimes;
      const uint32_t end = begin + 1 + random() % kTimes;
      for (uint32_t t = begin; t < std::min(end, kTimes); ++t) {
        if (kind == 2) elsewhere[t] += last - first + 1, at_worst[t] += last - first + 2;
        for (ChunkIndex c = first; kind != 2 && c <= last; ++c) ++live[t][c];
      }
      for (ChunkIndex c = first; kind == 0 && c <= last; ++c) ++at_first[c];
      ASSERT_TRUE(kind == 0 ? transition.Free(end, first, last)
                  : kind == 1
                      ? transition.Use(begin, end, first, last)
                      : transition.UseElsewhere(begin, end, (last - first + 1) * kChunkUnits));
    }
    for (ChunkIndex c = 0; c < kChunks; ++c) transition.SetLive(c, at_first[c]);
    uint64_t most = 0, most_at_worst = 0;
    for (uint32_t t = 0; t < kTimes; ++t) {
      const auto used =
          kChunks - static_cast<uint64_t>(std::count(live[t].begin(), live[t].end(), 0u));
      most = std::max(most, used + elsewhere[t]);
      most_at_worst = std::max(most_at_worst, used + at_worst[t]);
    }
    const Transition::InUse played = transition.MostInUse();
    ASSERT_EQ(played.likely, most) << "run " << run;
    ASSERT_EQ(played.at_worst, most_at_worst) << "run " << run;
  }
}

}  // namespace
}  // namespace tidemark::core
