// Merging and refusing policy requests.

#include "daemon/admin_policy.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/daemon/fake_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::StatusOr<PolicyChange> Merge(const std::string& text) {
  v1::SetPolicyRequest request;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &request)) << text;
  return MergePolicy(FakeNode().GetPolicy(), request);
}

TEST(AdminPolicy, ReplacesOnlyTheFieldsThatAreSet) {
  const auto change = Merge("entries { name: 'chargpt' priority: -5 }");
  ASSERT_TRUE(change.ok()) << change.status();
  ASSERT_EQ(change->set.size(), 1u);
  EXPECT_EQ(change->set[0].priority, -5);
  EXPECT_EQ(change->set[0].level, Level::kAggressive);
  EXPECT_EQ(change->set[0].device_budget_bytes, uint64_t{3} << 30);
  EXPECT_THAT(change->set[0].movable_classes, ElementsAre("activation", "optimizer"));
}

TEST(AdminPolicy, AZeroThatIsSetReplaces) {
  const auto change =
      Merge("entries { name: 'chargpt' guarantee_bytes: 0 device_budget_bytes: 0 }");
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->set[0].guarantee_bytes, 0u);
  EXPECT_EQ(change->set[0].device_budget_bytes, 0u);
}

TEST(AdminPolicy, ANewEntryStartsFromTheDefaultOfTheSameRequest) {
  const auto change =
      Merge("entries { name: 'new' priority: 3 } entries { name: 'default' min_size_bytes: 4096 }");
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->set[0].name, "new");
  EXPECT_EQ(change->set[0].min_size_bytes, 4096u);
}

TEST(AdminPolicy, TheWordAllMeansEveryClass) {
  const auto change = Merge("entries { name: 'chargpt' movable_classes: 'all' }");
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->set[0].movable_classes.size(), 6u);
}

TEST(AdminPolicy, ReplaceAllForgetsFormerValues) {
  const auto change =
      Merge("replace_all: true entries { name: 'default' } entries { name: 'chargpt' }");
  ASSERT_TRUE(change.ok());
  EXPECT_TRUE(change->replace_all);
  EXPECT_EQ(change->set[1].level, Level::kNormal);
  EXPECT_EQ(change->set[1].guarantee_bytes, 0u);
}

struct Refusal {
  const char* request;
  const char* said;
};

class AdminPolicyRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(AdminPolicyRefusal, NamesFieldValueAndRange) {
  const auto change = Merge(GetParam().request);
  ASSERT_EQ(change.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(change.status().message()), HasSubstr(GetParam().said));
  EXPECT_THAT(std::string(change.status().message()), HasSubstr("accepted: "));
}

INSTANTIATE_TEST_SUITE_P(
    Each, AdminPolicyRefusal,
    ::testing::Values(
        Refusal{"entries { name: '' }", "name is \"\""},
        Refusal{"entries { name: 'a b' }", "name is \"a b\""},
        Refusal{"entries { name: 'x' priority: 101 }", "priority is 101; accepted: -100 to 100"},
        Refusal{"entries { name: 'x' priority: -101 }", "priority is -101"},
        Refusal{"entries { name: 'x' max_slowdown_permille: 10001 }",
                "max_slowdown_permille is 10001; accepted: 0 to 10000"},
        Refusal{"entries { name: 'x' level: LEVEL_UNSPECIFIED }", "level is 0"},
        Refusal{"entries { name: 'x' host_budget_bytes: 18446744073709551615 }",
                "host_budget_bytes is 18446744073709551615"},
        Refusal{"entries { name: 'x' movable_classes: 'weights' }",
                "movable_classes is \"weights\""},
        Refusal{"entries { name: 'x' movable_classes: 'all' movable_classes: 'gradient' }",
                "movable_classes is \"all\""},
        Refusal{"entries { name: 'x' movable_classes: 'gradient' movable_classes: 'gradient' }",
                "movable_classes is \"gradient\""},
        Refusal{"entries { name: 'x' device_budget_bytes: 10 guarantee_bytes: 11 }",
                "guarantee_bytes is 11; accepted: at most its device_budget_bytes, 10"},
        Refusal{"entries { name: 'x' } entries { name: 'x' }", "\"x\" is given twice"},
        Refusal{"remove: 'default'", "remove names \"default\""},
        Refusal{"remove: 'nobody'", "an entry that exists: chargpt default"},
        Refusal{"remove: 'chargpt' entries { name: 'chargpt' }", "both set and removed"},
        Refusal{"replace_all: true entries { name: 'x' }", "replace_all without"},
        Refusal{"", "changes nothing"}));

}  // namespace
}  // namespace tidemark::daemon
