#include "daemon/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

PolicyChange Sets(PolicyEntry entry) {
  PolicyChange change;
  change.set.push_back(std::move(entry));
  change.actor = "test";
  return change;
}

PolicyEntry Named(const std::string& name) {
  PolicyEntry entry = DefaultEntry();
  entry.name = name;
  return entry;
}

TEST(Policy, ServesAJobByItsNameElseByDefault) {
  PolicyEntry entry = Named("train");
  entry.priority = 7;
  const Policy policy = *Changed(DefaultPolicy(), Sets(entry));
  EXPECT_EQ(EntryFor(policy, "train").priority, 7);
  EXPECT_EQ(EntryFor(policy, "other").name, "default");
  EXPECT_EQ(policy.generation, 2u);
}

TEST(Policy, NamesFieldValueAndRangeOfABadEntry) {
  const auto refused = [](auto spoil) {
    PolicyEntry entry = Named("train");
    spoil(&entry);
    const auto changed = Changed(DefaultPolicy(), Sets(entry));
    EXPECT_TRUE(absl::IsInvalidArgument(changed.status()));
    return std::string(changed.status().message());
  };
  EXPECT_THAT(refused([](PolicyEntry* e) { e->priority = 101; }),
              HasSubstr("priority 101 is out of range: -100 to 100"));
  EXPECT_THAT(refused([](PolicyEntry* e) { e->max_slowdown_permille = 10001; }),
              HasSubstr("max_slowdown_permille 10001 is out of range: 0 to 10000"));
  EXPECT_THAT(refused([](PolicyEntry* e) { e->movable_classes = {"weights"}; }),
              HasSubstr("\"weights\" is not one of parameter"));
  EXPECT_THAT(refused([](PolicyEntry* e) { e->device_budget_bytes = uint64_t{1} << 60; }),
              HasSubstr("device_budget_bytes"));
  EXPECT_THAT(refused([](PolicyEntry* e) {
                e->device_budget_bytes = 5;
                e->guarantee_bytes = 6;
              }),
              HasSubstr("guarantee_bytes 6 is more than device_budget_bytes 5"));
  EXPECT_THAT(refused([](PolicyEntry* e) { e->name = "a b"; }), HasSubstr("without spaces"));
  EXPECT_THAT(refused([](PolicyEntry* e) { e->name = std::string(64, 'x'); }),
              HasSubstr("1 to 63 bytes"));
}

TEST(Policy, KeepsDefaultWhateverIsRemovedOrReplaced) {
  PolicyChange change;
  change.remove = {"default"};
  EXPECT_THAT(std::string(Changed(DefaultPolicy(), change).status().message()),
              HasSubstr("cannot be removed"));
  change = Sets(Named("only"));
  change.replace_all = true;
  EXPECT_EQ(Changed(DefaultPolicy(), change)->entries.count("default"), 1u);
  change = PolicyChange();
  change.remove = {"ghost"};
  EXPECT_THAT(std::string(Changed(DefaultPolicy(), change).status().message()),
              HasSubstr("\"ghost\""));
}

LeaseQuestion Asks(uint64_t count, uint64_t at_least) {
  LeaseQuestion question;
  question.count = count;
  question.at_least = at_least;
  question.budget = 10;
  question.limit = 10;
  question.room = 100;
  question.chunk_bytes = 2 << 20;
  question.place = "device 0";
  return question;
}

TEST(Answer, GrantsAsMuchAsBudgetAndRoomAllow) {
  LeaseQuestion question = Asks(8, 1);
  EXPECT_EQ(Answer(question).granted, 8u);
  question.held = 7;
  EXPECT_EQ(Answer(question).granted, 3u);
  question.room = 2;
  EXPECT_EQ(Answer(question).granted, 2u);
}

TEST(Answer, SaysHowMuchIsShortAndWhy) {
  LeaseQuestion question = Asks(8, 8);
  question.held = 7;
  const LeaseAnswer over = Answer(question);
  EXPECT_EQ(over.granted, 0u);
  EXPECT_EQ(over.chunks_short, 5u);
  EXPECT_FALSE(over.contended);
  EXPECT_THAT(over.reason, HasSubstr("16 MiB more on device 0: the job holds 14 MiB of its limit"));
  question.limit = 100;
  EXPECT_TRUE(Answer(question).contended);
  EXPECT_THAT(Answer(question).reason, HasSubstr("present share 20 MiB"));
  question = Asks(8, 8);
  question.room = 3;
  EXPECT_TRUE(Answer(question).contended);
  EXPECT_THAT(Answer(question).reason, HasSubstr("only 6 MiB is free"));
}

TEST(Answer, DoesNotUnderflowWhenTheBudgetShrankBelowWhatIsHeld) {
  LeaseQuestion question = Asks(4, 1);
  question.held = 50;
  EXPECT_EQ(Answer(question).granted, 0u);
  EXPECT_EQ(Answer(question).chunks_short, 1u);
}

}  // namespace
}  // namespace tidemark::daemon
