// The table of passed-through allocations against a map.

#include "interpose/outside.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>

namespace tidemark::interpose {
namespace {

struct Expected {
  OutsideAllocation allocation;
  int references;
};
using Model = std::map<std::pair<int, uint64_t>, Expected>;

// Forgets everything the model still holds, checking each entry.
void Drain(Model* model) {
  for (auto& [key, expected] : *model) {
    OutsideAllocation found;
    for (; expected.references > 1; --expected.references) {
      EXPECT_FALSE(ForgetOutside(static_cast<OutsideKind>(key.first), key.second, &found));
    }
    ASSERT_TRUE(ForgetOutside(static_cast<OutsideKind>(key.first), key.second, &found));
    EXPECT_EQ(found.bytes, expected.allocation.bytes);
    EXPECT_EQ(found.device, expected.allocation.device);
  }
  model->clear();
}

TEST(OutsideTest, AgreesWithAMapUnderRandomOperations) {
  std::mt19937_64 random(7);
  Model model;
  for (int i = 0; i < 200000; ++i) {
    int kind = static_cast<int>(random() % 3);
    uint64_t name = (random() % 3000) * 512;  // aligned, as addresses are
    auto key = std::make_pair(kind, name);
    auto at = model.find(key);
    switch (random() % 4) {
      case 0:
      case 1: {
        OutsideAllocation allocation{random() % 1000, static_cast<int>(random() % 8)};
        RememberOutside(static_cast<OutsideKind>(kind), name, allocation);
        model[key] = {allocation, 1};
        break;
      }
      case 2:
        RetainOutside(static_cast<OutsideKind>(kind), name);
        if (at != model.end()) ++at->second.references;
        break;
      default: {
        OutsideAllocation found;
        bool last = ForgetOutside(static_cast<OutsideKind>(kind), name, &found);
        bool expected = at != model.end() && --at->second.references == 0;
        ASSERT_EQ(last, expected);
        if (!expected) break;
        ASSERT_EQ(found.bytes, at->second.allocation.bytes);
        ASSERT_EQ(found.device, at->second.allocation.device);
        model.erase(at);
      }
    }
  }
  Drain(&model);
}

TEST(OutsideTest, ChildForgetsTheParentsAllocations) {
  RememberOutside(OutsideKind::kAddress, 512, {100, 0});
  ForgetAllOutside();
  OutsideAllocation found;
  EXPECT_FALSE(ForgetOutside(OutsideKind::kAddress, 512, &found));
  RememberOutside(OutsideKind::kAddress, 512, {200, 1});
  EXPECT_TRUE(ForgetOutside(OutsideKind::kAddress, 512, &found));
  EXPECT_EQ(found.bytes, 200u);
}

}  // namespace
}  // namespace tidemark::interpose
