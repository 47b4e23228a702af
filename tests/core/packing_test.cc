// Packings of buffers whose lifetimes recur: nothing overlaps, and little is wasted.

#include "core/packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tidemark::core {
namespace {

struct Packed {
  Array<Recurring> requests;
  uint64_t top = 0;
  uint64_t floor = 0;
};

void Add(Packed* packed, uint32_t units, uint32_t life) {
  ASSERT_TRUE(packed->requests.Append({units, 1, life, Recurring::kNowhere}));
}

bool Pack(Packed* packed, uint64_t room) {
  Packing packing;
  if (!packing.Init() || !packing.Start(&packed->requests, {room})) return false;
  while (!packing.Work(10)) {
  }
  if (!packing.found()) return false;
  packing.WritePlaces(&packed->requests);
  packed->top = packing.top();
  packed->floor = packing.floor();
  return true;
}

// Units alive at each request of the period that share a place with another, by brute force.
bool Overlaps(const Packed& packed) {
  const auto period = static_cast<uint32_t>(packed.requests.size());
  for (uint32_t now = 0; now < period; ++now) {
    std::vector<std::pair<uint32_t, uint32_t>> alive;
    for (uint32_t i = 0; i < period; ++i) {
      const Recurring& r = packed.requests[i];
      if ((now + period - i) % period < r.life) alive.push_back({r.place, r.place + r.units});
    }
    std::sort(alive.begin(), alive.end());
    for (size_t i = 1; i < alive.size(); ++i) {
      if (alive[i].first < alive[i - 1].second) return true;
    }
  }
  return false;
}

TEST(Packing, StacksWhatIsFreedInReverse) {
  Packed packed;
  for (uint32_t i = 0; i < 50; ++i) Add(&packed, 1 + i % 7, 100 - 2 * i);
  for (uint32_t i = 0; i < 50; ++i) Add(&packed, 1, 1);
  ASSERT_TRUE(Pack(&packed, 10000));
  EXPECT_EQ(packed.top, packed.floor);
  EXPECT_FALSE(Overlaps(packed));
}

TEST(Packing, NeverGivesAPlaceTwiceAtATime) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Packed packed;
    const uint32_t period = 3 + random() % 120;
    for (uint32_t i = 0; i < period; ++i) {
      const uint32_t life = random() % 5 == 0 ? random() % (period + 1) : random() % 8;
      Add(&packed, 1 + random() % 1000, std::min(life, period));
    }
    if (!Pack(&packed, ~uint64_t{0})) continue;  // nothing to pack
    EXPECT_FALSE(Overlaps(packed)) << "seed " << seed;
    EXPECT_GE(packed.top, packed.floor);
    const uint64_t room = packed.floor + packed.floor / 16;
    if (!Pack(&packed, room)) continue;  // none of the orders does it
    EXPECT_LE(packed.top, room);
    EXPECT_FALSE(Overlaps(packed)) << "seed " << seed << " in little room";
  }
}

TEST(Packing, PacksWhatOutlivesTheEndOfAPeriodIntoTheNext) {
  Packed packed;
  Add(&packed, 10, 2);
  Add(&packed, 20, 1);
  Add(&packed, 30, 2);  // until the first request of the next period
  ASSERT_TRUE(Pack(&packed, 1000));
  EXPECT_EQ(packed.floor, 40u);
  EXPECT_FALSE(Overlaps(packed));
}

TEST(Packing, SaysNoWhereTheMostAliveAtOnceHasNoRoom) {
  Packed packed;
  Add(&packed, 10, 2);
  Add(&packed, 20, 2);
  Add(&packed, 5, 0);
  EXPECT_FALSE(Pack(&packed, 29));
  EXPECT_TRUE(Pack(&packed, 30));
  EXPECT_EQ(packed.requests[2].place, Recurring::kNowhere);
}

TEST(Packing, SaysNoWhereThereIsNothingToPack) {
  Packed packed;
  Add(&packed, 10, 0);
  EXPECT_FALSE(Pack(&packed, 1000));
}

TEST(Packing, LeavesWhatIsTakenAlone) {
  for (uint32_t seed = 1; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Packed packed;
    const uint32_t period = 3 + random() % 120;
    for (uint32_t i = 0; i < period; ++i) Add(&packed, 1 + random() % 100, 1 + random() % 8);
    Array<Taken> taken;
    for (uint32_t at = 0, units; at < 3000; at += units + 1 + random() % 150) {
      ASSERT_TRUE(taken.Append({at, units = 1 + random() % 50}));
    }
    Packing packing;
    ASSERT_TRUE(packing.Init());
    if (!packing.Start(&packed.requests, {1500 + random() % 1500, &taken, nullptr})) continue;
    while (!packing.Work(10)) {
    }
    if (!packing.found()) continue;
    packing.WritePlaces(&packed.requests);
    EXPECT_FALSE(Overlaps(packed)) << "seed " << seed;
    for (const Recurring& r : packed.requests) {
      for (const Taken& t : taken) {
        EXPECT_TRUE(r.place + r.units <= t.place || t.end() <= r.place) << "seed " << seed;
      }
    }
  }
}

// Four of 10 units each do not fit into 22, but two of them fit into a berth of 20, which is there
// until request 6.
TEST(Packing, UsesABerthWhereTheRoomDoesNotSuffice) {
  Packed packed;
  for (int i = 0; i < 4; ++i) Add(&packed, 10, i < 2 ? 8 : 3);
  for (int i = 0; i < 6; ++i) Add(&packed, 1, 1);
  Array<Berth> berths;
  ASSERT_TRUE(berths.Append({20, 0, 6}));
  Packing packing;
  ASSERT_TRUE(packing.Init());
  EXPECT_FALSE(packing.Start(&packed.requests, {22, nullptr, nullptr}));
  ASSERT_TRUE(packing.Start(&packed.requests, {22, nullptr, &berths}));
  while (!packing.Work(10)) {
  }
  ASSERT_TRUE(packing.found());
  packing.WritePlaces(&packed.requests);
  const auto& r = packed.requests;
  EXPECT_EQ(r[0].berth + r[1].berth, 0u) << "they live on when others need the place";
  EXPECT_EQ(r[2].berth, 1u);
  EXPECT_EQ(r[3].berth, 1u);
  EXPECT_LE(std::max(r[2].place, r[3].place) + 10, 20u);
  EXPECT_NE(r[2].place, r[3].place) << "both live at once";
  EXPECT_FALSE(r[2].IsFixed(r.size()));
  EXPECT_TRUE(r[0].IsFixed(r.size()));
}

}  // namespace
}  // namespace tidemark::core
