#include "daemon/arbiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace tidemark::daemon {
namespace {

Claim Wants(uint64_t wanted, uint64_t limit = 1000) {
  Claim claim;
  claim.wanted = wanted;
  claim.limit = limit;
  return claim;
}

uint64_t SumOf(const std::vector<uint64_t>& parts) {
  return std::accumulate(parts.begin(), parts.end(), uint64_t{0});
}

TEST(Divide, GivesEverybodyWhatTheyWantWhenThereIsEnough) {
  EXPECT_EQ(Divide(100, {Wants(10), Wants(70), Wants(20)}), (std::vector<uint64_t>{10, 70, 20}));
}

TEST(Divide, SharesEquallyAndPassesOnWhatOneDoesNotWant) {
  EXPECT_EQ(Divide(90, {Wants(10), Wants(100), Wants(100)}), (std::vector<uint64_t>{10, 40, 40}));
}

TEST(Divide, GivesOddChunksToTheEarlierAttached) {
  EXPECT_EQ(Divide(8, {Wants(9), Wants(9), Wants(9)}), (std::vector<uint64_t>{3, 3, 2}));
}

TEST(Divide, NeverGivesMoreThanTheLimit) {
  EXPECT_EQ(Divide(100, {Wants(90, 20), Wants(90)}), (std::vector<uint64_t>{20, 80}));
}

TEST(Divide, HonoursGuaranteesBeforePriority) {
  Claim low = Wants(100);
  low.guarantee = 60;
  Claim high = Wants(100);
  high.priority = 10;
  EXPECT_EQ(Divide(100, {low, high}), (std::vector<uint64_t>{60, 40}));
}

TEST(Divide, LeavesAMinimumToTheLowestPriority) {
  Claim high = Wants(1000);
  high.priority = 10;
  const std::vector<uint64_t> parts = Divide(160, {Wants(1000), high});
  EXPECT_EQ(parts[0], 160u / 2 / 8);
  EXPECT_EQ(SumOf(parts), 160u);
}

TEST(Divide, NeverTakesWhatCannotBeMoved) {
  Claim stuck = Wants(90);
  stuck.held = 90;
  stuck.movable = false;
  EXPECT_EQ(Divide(100, {Wants(50), stuck}), (std::vector<uint64_t>{10, 90}));
}

TEST(Entitlement, OfALonelyJobIsAllThereIs) {
  EXPECT_EQ(Entitlement(100, {Wants(0, 100)}, 0), 100u);
}

TEST(Entitlement, LeavesAnIdleRivalWhatItHolds) {
  Claim rival = Wants(30);
  rival.held = 30;
  EXPECT_EQ(Entitlement(100, {Wants(0, 100), rival}, 0), 70u);
}

TEST(Entitlement, FallsToTheFairShareWhenARivalIsShort) {
  Claim big = Wants(60, 100);
  big.held = 60;
  Claim is_short = Wants(80, 100);
  is_short.held = 40;
  EXPECT_EQ(Entitlement(100, {big, is_short}, 0), 50u);
}

// The rule of the header, one chunk at a time.
std::vector<uint64_t> NaiveDivide(uint64_t capacity, const std::vector<Claim>& claims) {
  const size_t count = claims.size();
  std::vector<uint64_t> part(count);
  std::vector<uint64_t> demand(count);
  uint64_t left = capacity;
  for (size_t i = 0; i < count; ++i) {
    demand[i] = std::min(claims[i].wanted, claims[i].limit);
    if (claims[i].movable) continue;
    demand[i] = std::max(demand[i], claims[i].held);
    part[i] = claims[i].held;
    left -= std::min(left, part[i]);
  }
  const auto raise = [&](size_t i, uint64_t level) {
    while (part[i] < std::min(level, demand[i]) && left > 0) ++part[i], --left;
  };
  for (size_t i = 0; i < count; ++i) raise(i, claims[i].guarantee);
  for (size_t i = 0; i < count; ++i) raise(i, std::max<uint64_t>(capacity / count / 8, 1));
  while (left > 0) {
    size_t best = count;
    for (size_t i = 0; i < count; ++i) {
      if (part[i] >= demand[i]) continue;
      if (best == count || claims[i].priority > claims[best].priority ||
          (claims[i].priority == claims[best].priority && part[i] < part[best])) {
        best = i;
      }
    }
    if (best == count) break;
    ++part[best], --left;
  }
  return part;
}

TEST(Divide, AgreesWithTheNaiveRuleOnRandomClaims) {
  std::mt19937 random(1);
  const auto below = [&](uint64_t n) { return static_cast<uint64_t>(random() % n); };
  for (int round = 0; round < 3000; ++round) {
    const uint64_t capacity = below(120);
    std::vector<Claim> claims(1 + below(6));
    for (Claim& claim : claims) {
      claim.held = below(30);
      claim.wanted = claim.held + below(50);
      claim.limit = below(90);
      claim.guarantee = below(4) == 0 ? below(40) : 0;
      claim.priority = static_cast<int32_t>(below(3));
      claim.movable = below(5) != 0;
    }
    ASSERT_EQ(Divide(capacity, claims), NaiveDivide(capacity, claims)) << "round " << round;
    for (size_t i = 0; i < claims.size(); ++i) {
      ASSERT_GE(Entitlement(capacity, claims, i), Divide(capacity, claims)[i]) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace tidemark::daemon
