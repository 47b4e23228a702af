#include "daemon/policy_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/policy.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

Policy Rich() {
  Policy policy = DefaultPolicy();
  PolicyEntry entry = DefaultEntry();
  entry.name = "train/big";
  entry.level = Level::kAggressive;
  entry.device_budget_bytes = uint64_t{4} << 30;
  entry.guarantee_bytes = 12345;
  entry.priority = -3;
  entry.max_slowdown_permille = 50;
  entry.movable_classes = {"activation", "optimizer"};
  policy.entries[entry.name] = entry;
  policy.generation = 9;
  return policy;
}

TEST(PolicyText, IsReadBackUnchanged) {
  const std::string text = FormatPolicy(Rich());
  const absl::StatusOr<Policy> read = ParsePolicy(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormatPolicy(*read), text);
  EXPECT_THAT(text, HasSubstr("[train/big]\nlevel = aggressive\ndevice_budget_bytes = 4GiB\n"));
}

std::string Refusal(const std::string& text) {
  const absl::StatusOr<Policy> read = ParsePolicy(text);
  EXPECT_FALSE(read.ok()) << text;
  return std::string(read.status().message());
}

TEST(PolicyText, RefusesTheWholeTextAndNamesTheLine) {
  const std::string head = "generation = 1\n[default]\n";
  EXPECT_THAT(Refusal(head + "colour = blue\n"), HasSubstr("line 3: there is no policy key"));
  EXPECT_THAT(Refusal(head + "priority = 7up\n"), HasSubstr("line 3"));
  EXPECT_THAT(Refusal(head + "priority = 700\n"), HasSubstr("priority 700 is out of range"));
  EXPECT_THAT(Refusal(head + "level = mad\n"), HasSubstr("off, normal or aggressive"));
  EXPECT_THAT(Refusal(head + "level = off\nlevel = off\n"), HasSubstr("appears twice"));
  EXPECT_THAT(Refusal(head + "[default]\n"), HasSubstr("appears twice"));
  EXPECT_THAT(Refusal(head + "nonsense\n"), HasSubstr("neither [name] nor key = value"));
  EXPECT_THAT(Refusal("generation = 1\n[other]\n"), HasSubstr("no [default]"));
  EXPECT_THAT(Refusal("[default]\n"), HasSubstr("generation"));
  EXPECT_THAT(Refusal(""), HasSubstr("no [default]"));
  EXPECT_THAT(Refusal(std::string("generation = 1\n[default\0]\n", 26)), HasSubstr("line 2"));
}

TEST(PolicyText, DescribesAChangeByItsFields) {
  Policy next = Rich();
  next.entries["default"].priority = 4;
  next.entries.erase("train/big");
  const std::string text = DescribeChange(Rich(), next);
  EXPECT_THAT(text, HasSubstr("set [default] priority=\"4\" (was \"0\")"));
  EXPECT_THAT(text, HasSubstr("remove [train/big]"));
}

}  // namespace
}  // namespace tidemark::daemon
