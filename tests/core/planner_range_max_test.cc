#include "core/planner/range_max.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tidemark::core::planner {
namespace {

uint32_t Below(std::mt19937_64& random, uint32_t limit) {
  return static_cast<uint32_t>(random() % limit);
}

// The same by looking at each slot.
uint32_t LastAbove(const std::vector<int64_t>& slots, uint32_t end, int64_t limit) {
  for (uint32_t i = std::min(end, static_cast<uint32_t>(slots.size())); i-- > 0;) {
    if (slots[i] > limit) return i;
  }
  return kNone;
}

TEST(RangeMax, FindsTheSlotThatLookingAtEachFinds) {
  std::mt19937_64 random(1);
  for (const uint32_t size : {1u, 2u, 3u, 8u, 13u, 64u, 100u}) {
    RangeMax tree;
    std::vector<int64_t> slots(size);
    ASSERT_TRUE(tree.Start(size));
    for (uint32_t i = 0; i < size; ++i) tree.Set(i, slots[i] = Below(random, 50));
    tree.Settle();
    for (int step = 0; step < 2000; ++step) {
      const uint32_t from = Below(random, size), to = from + Below(random, size - from + 1);
      const auto amount = static_cast<int64_t>(Below(random, 21)) - 10;
      tree.Add(from, to, amount);
      for (uint32_t i = from; i < to; ++i) slots[i] += amount;
      const uint32_t end = Below(random, size + 1);
      const auto limit = static_cast<int64_t>(Below(random, 80)) - 10;
      const RangeMax::Slot found = tree.LastAbove(end, limit);
      ASSERT_EQ(found.at, LastAbove(slots, end, limit));
      if (found.at != kNone) {
        ASSERT_EQ(found.amount, slots[found.at]);
      }
    }
  }
}

}  // namespace
}  // namespace tidemark::core::planner
