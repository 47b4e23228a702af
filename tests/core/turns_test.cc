// Requests that outlive the period in which they recur: as many places as are alive at once, and
// always one that is free.

#include "core/turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace tidemark::core {
namespace {

using Requests = Array<Recurring>;

void Add(Requests* requests, uint32_t units, uint32_t life) {
  ASSERT_TRUE(requests->Append({units, 1, life, Recurring::kNowhere}));
}

// What the longer lives of each size hold at once, by playing three periods.
uint64_t MostAtOnce(const Requests& requests) {
  const auto period = static_cast<uint32_t>(requests.size());
  std::map<uint32_t, uint64_t> most;
  for (uint32_t now = 2 * period; now < 3 * period; ++now) {
    std::map<uint32_t, uint64_t> alive;
    for (uint32_t born = 0; born <= now; ++born) {
      const Recurring& r = requests[born % period];
      if (r.life > period && born + r.life > now) alive[r.units] += r.units;
    }
    for (const auto& [units, sum] : alive) most[units] = std::max(most[units], sum);
  }
  uint64_t sum = 0;
  for (const auto& [units, one] : most) sum += one;
  return sum;
}

TEST(Turns, NeedsOnePlaceMoreThanThereAreWhereEachIsMadeBeforeTheOldOneGoes) {
  Requests requests;
  for (uint32_t i = 0; i < 100; ++i) Add(&requests, 8, 101);
  Turns turns;
  ASSERT_TRUE(turns.Collect(&requests));
  EXPECT_EQ(turns.units(), 101u * 8);
}

TEST(Turns, LeavesShorterLivesAlone) {
  Requests requests;
  Add(&requests, 8, 2);
  Add(&requests, 8, 1);
  Turns turns;
  ASSERT_TRUE(turns.Collect(&requests));
  EXPECT_EQ(turns.units(), 0u);
  EXPECT_EQ(requests[0].place, Recurring::kNowhere);
}

TEST(Turns, GivesPlacesThatNobodyElseHas) {
  std::mt19937 random(1);
  for (int run = 0; run < 200; ++run) {
    const uint32_t period = 1 + random() % 60;
    Requests requests;
    for (uint32_t i = 0; i < period; ++i) {
      const uint32_t life = random() % 3 == 0 ? random() % (period + 1) : 0;
      Add(&requests, 1 + random() % 4, life == 0 ? 0 : period + life);
    }
    const uint64_t most = MostAtOnce(requests);
    Turns turns;
    ASSERT_TRUE(turns.Collect(&requests));
    ASSERT_EQ(turns.units(), most) << "run " << run;
    std::map<uint32_t, std::pair<uint32_t, uint32_t>> alive;  // by number: place and end
    for (uint32_t now = 0; now < 6 * period; ++now) {
      std::erase_if(alive, [&](const auto& one) {
        const uint32_t born = one.first - 1;
        return born + requests[born % period].life <= now;
      });
      const Recurring& r = requests[now % period];
      if (r.life <= period) continue;
      const uint32_t place =
          turns.Take(r.place, now + 1, [&](uint32_t holder) { return !alive.contains(holder); });
      ASSERT_NE(place, Recurring::kNowhere) << "run " << run << ", request " << now;
      ASSERT_LE(place + r.units, turns.units());
      for (const auto& [number, range] : alive) {
        ASSERT_TRUE(range.second <= place || place + r.units <= range.first) << "run " << run;
      }
      alive[now + 1] = {place, place + r.units};
    }
  }
}

}  // namespace
}  // namespace tidemark::core
