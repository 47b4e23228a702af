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

TEST(Turns, HasABerthForThePeriodButTheMomentInWhichItsPlaceIsNeeded) {
  Requests requests;
  for (uint32_t i = 0; i < 100; ++i) Add(&requests, 8, i == 40 || i == 41 ? 102 : 1);
  Turns turns;
  ASSERT_TRUE(turns.Collect(&requests));
  EXPECT_EQ(turns.units(), 4u * 8);
  ASSERT_EQ(turns.berths().size(), 2u);
  EXPECT_EQ(turns.berths()[0].from, 42u);  // where both places are needed at request 41 only
  EXPECT_EQ(turns.berths()[0].length, 99u);
  EXPECT_EQ(turns.berths()[1].from, 43u);
  EXPECT_EQ(turns.berths()[1].length, 97u);
}

TEST(Turns, BeginsWithTheOnesThatAreFreeWhereTheOwnerSaysWhereTheyAre) {
  Requests requests;
  for (uint32_t i = 0; i < 10; ++i) Add(&requests, 8, 11);
  Turns turns;
  ASSERT_TRUE(turns.Collect(&requests));
  turns.Unplace();
  for (uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(turns.PutAt(100 * i, 0, 10 - i));
  uint32_t units = 0;
  uint32_t* last = turns.Unplaced(&units);
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(units, 8u);
  *last = 5000;
  EXPECT_EQ(turns.Unplaced(&units), nullptr);
  turns.Sort(10);
  uint32_t looks = 0;
  for (uint32_t now = 11; now < 41; ++now) {
    const auto is_free = [&](uint32_t holder) { return ++looks, holder + 11 <= now; };
    const uint32_t place = turns.Take(0, now, is_free);
    if (now == 11) {
      EXPECT_EQ(place, 5000u);
    } else if (now < 22) {
      EXPECT_EQ(place, 100 * (21 - now)) << "that of the one that was made first";
    }
    EXPECT_NE(place, Recurring::kNowhere);
  }
  EXPECT_LE(looks, 30u) << "each comes when it is free";
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

// Plays `periods` of requests that take turns, and guests of random lives in the berths meanwhile.
class Visits {
 public:
  Visits(const Requests& requests, Turns* turns, uint32_t seed)
      : requests_(requests), turns_(turns), random_(seed) {}

  bool Play(uint32_t periods) { return PlayUntil(periods * requests_.size()); }
  bool PlayUntil(uint32_t end) {
    for (; now_ < end; ++now_) {
      EndLives();
      const Recurring& r = requests_[now_ % requests_.size()];
      if (r.life > requests_.size() ? !Turn(r) : !Visit()) return false;
    }
    return true;
  }
  // What comes until then lies elsewhere. Afterwards places are taken up again.
  void SkipUntil(uint32_t end) {
    for (; now_ < end; ++now_) EndLives();
    EndLives();
    turns_->TakeUp(requests_, end % requests_.size(), [this](uint32_t h) { return IsFree(h); });
  }
  uint32_t visits() const { return visits_; }

 private:
  static constexpr uint32_t kNoBerth = ~uint32_t{0};
  struct Alive {
    uint32_t place, units, end, berth;
  };
  bool IsFree(uint32_t holder) const { return !alive_.contains(holder); }
  void EndLives() {
    std::erase_if(alive_, [this](const auto& one) { return one.second.end <= now_; });
  }

  bool Turn(const Recurring& r) {
    const uint32_t place =
        turns_->Take(r.place, now_ + 1, [this](uint32_t holder) { return IsFree(holder); });
    return Enter({place, r.units, now_ + r.life, kNoBerth});
  }

  bool Visit() {
    const auto period = static_cast<uint32_t>(requests_.size());
    if (turns_->berths().empty()) return true;
    const uint32_t b = random_() % turns_->berths().size();
    const Berth& berth = turns_->berths()[b];
    const uint32_t since = (now_ % period + period - berth.from) % period;
    if (since >= berth.length) return true;
    ++visits_;
    const uint32_t end = now_ + 1 + random_() % (berth.length - since);
    const uint32_t place =
        turns_->TakeBerth(b, now_ + 1, end, [this](uint32_t holder) { return IsFree(holder); });
    return Enter({place, berth.units, end, b});
  }

  bool Enter(const Alive& entered) {
    if (entered.place == Recurring::kNowhere) return false;
    for (const auto& [number, other] : alive_) {
      const bool apart = other.place + other.units <= entered.place ||
                         entered.place + entered.units <= other.place;
      const bool together = other.berth == entered.berth && other.berth != kNoBerth;
      if (together ? other.place != entered.place : !apart) return false;
    }
    alive_[now_ + 1] = entered;
    return true;
  }

  const Requests& requests_;
  Turns* turns_;
  std::mt19937 random_;
  uint32_t now_ = 0;
  uint32_t visits_ = 0;
  std::map<uint32_t, Alive> alive_;  // by number
};

TEST(Turns, KeepsGuestsOfABerthTogetherAndApartFromAllOthers) {
  for (uint32_t run = 0; run < 300; ++run) {
    std::mt19937 random(run);
    const uint32_t period = 2 + random() % 60;
    Requests requests;
    for (uint32_t i = 0; i < period; ++i) {
      const bool stays = random() % 3 == 0;
      Add(&requests, 1 + random() % 4, stays ? period + 1 + random() % (1 + period / 4) : 1);
    }
    Turns turns;
    ASSERT_TRUE(turns.Collect(&requests));
    EXPECT_TRUE(Visits(requests, &turns, run).Play(6)) << "run " << run;
  }
}

// Pairs of three sizes, made anew one after another; the largest ones when the most is needed.
TEST(Turns, StandInStripsThatAreABerthWhenTheMostIsNeeded) {
  Requests requests;
  for (const uint32_t units : {39, 16, 4, 4, 16, 4, 4, 16, 4, 4}) {
    for (int i = 0; i < 2; ++i) Add(&requests, units, 20 + 2);
  }
  Turns turns;
  ASSERT_TRUE(turns.Collect(&requests));
  const uint64_t apart = turns.units();
  EXPECT_EQ(turns.berths()[0].units, 39u);
  ASSERT_TRUE(turns.CollectInStrips(&requests, 1));
  // Four strips of 16, 16, 4 and 4; the other six of 4 units need two places more once again.
  EXPECT_EQ(turns.units(), apart + 2 * 4);
  EXPECT_EQ(turns.berths()[0].units, 40u);
  EXPECT_EQ(turns.berths()[0].from, 1u) << "from where the last pair is there once";
  EXPECT_EQ(turns.berths()[0].length, 1u) << "until the first pair of 16 is made anew";
}

TEST(Turns, StandInNoStripsWhereAllAreAliveTwiceWhenTheMostIsNeeded) {
  Requests requests;
  for (int i = 0; i < 10; ++i) Add(&requests, 1 + i % 2, 10 + 2);
  Turns turns;
  EXPECT_FALSE(turns.CollectInStrips(&requests, 5));
}

// Of up to four sizes, each made anew in the order of its requests. Those of one size are alive
// twice for as long.
Requests RandomState(std::mt19937* random) {
  const uint32_t period = 10 + (*random)() % 90;
  const uint32_t sizes = 1 + (*random)() % 4;
  const uint32_t quiet = (*random)() % period;  // none from here on for a while
  uint32_t twice[4];
  for (uint32_t& one : twice) one = 1 + (*random)() % (1 + period / 8);
  Requests requests;
  for (uint32_t i = 0; i < period; ++i) {
    const uint32_t size = (*random)() % sizes;
    const bool stays = (*random)() % 3 != 0 && (i + period - quiet) % period > period / 4;
    Add(&requests, 1 + size * 3, stays ? period + twice[size] : 1);
  }
  return requests;
}

TEST(Turns, KeepsGuestsOfAStripApartFromAllOthersAfterAnyBreak) {
  uint32_t in_strips = 0;
  uint32_t visits = 0;
  for (uint32_t run = 0; run < 600; ++run) {
    std::mt19937 random(run);
    Requests requests = RandomState(&random);
    const auto period = static_cast<uint32_t>(requests.size());
    Turns turns;
    if (!turns.CollectInStrips(&requests, random() % period)) continue;
    ++in_strips;
    const uint32_t cut = turns.berths()[0].from;
    Visits job(requests, &turns, run);
    job.SkipUntil(cut);
    uint32_t now = cut;
    for (int stretch = 0; stretch < 5; ++stretch) {
      now += random() % (3 * period);
      ASSERT_TRUE(job.PlayUntil(now)) << "run " << run << ", stretch " << stretch;
      now += random() % period;
      now += (cut + period - now % period) % period;
      job.SkipUntil(now);
    }
    ASSERT_TRUE(job.PlayUntil(now + 3 * period)) << "run " << run;
    visits += job.visits();
  }
  EXPECT_GE(in_strips, 200u);
  EXPECT_GE(visits, 1000u);
}

}  // namespace
}  // namespace tidemark::core
