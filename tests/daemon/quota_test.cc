#include "daemon/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kNoMemory = TM_WIRE_NO_MEMORY;

PolicyEntry QuotaOf(const std::string& name, uint64_t device_chunks, uint64_t host_chunks = 0) {
  PolicyEntry entry = DefaultEntry();
  entry.name = name;
  entry.device_budget_bytes = device_chunks * kChunk;
  entry.host_budget_bytes = host_chunks * kChunk;
  return entry;
}

void Set(TestNode* node, const std::vector<PolicyEntry>& entries) {
  PolicyChange change;
  change.set = entries;
  change.actor = "uid 0 pid 7";
  ASSERT_TRUE(node->broker->ChangePolicy(change).ok());
}

TEST(Quota, NamesAUserOrAllOthersAndHoldsTwoBoundsOnly) {
  for (const char* name : {"uid:0", "uid:1000", "uid:4294967295", "uid:*"}) {
    EXPECT_TRUE(ValidateEntry(QuotaOf(name, 3)).ok()) << name;
  }
  for (const char* name : {"uid:", "uid:bob", "uid:-1", "uid:007", "uid:4294967296", "uid:**"}) {
    EXPECT_THAT(std::string(ValidateEntry(QuotaOf(name, 3)).message()), HasSubstr("uid:N")) << name;
  }
  PolicyEntry entry = QuotaOf("uid:7", 3);
  entry.priority = 5;
  EXPECT_THAT(std::string(ValidateEntry(entry).message()),
              HasSubstr("only device_budget_bytes and host_budget_bytes"));
}

TEST(Quota, BoundsAllJobsOfAUserTogetherAndNobodyElse) {
  TestNode node({64 * kChunk});
  Set(&node, {QuotaOf("uid:1000", 10)});
  TestJob first(&node, "a", 1000);
  TestJob second(&node, "b", 1000);
  TestJob other(&node, "c", 2000);
  EXPECT_EQ(first.budget_chunks(), 10u) << "nobody else of the user wants any";
  EXPECT_EQ(first.Lease(6, 6).count, 6u);
  EXPECT_EQ(second.Lease(6, 1).count, 4u);
  const tm_wire_leased refused = second.Lease(3, 1);
  EXPECT_EQ(refused.outcome, kNoMemory);
  EXPECT_THAT(refused.reason, HasSubstr("the jobs of its user 20 MiB of their quota 20 MiB"));
  EXPECT_EQ(other.Lease(50, 50).count, 50u);
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Quota, DividesAUsersQuotaFairlyAndSqueezesNobodyElse) {
  TestNode node({64 * kChunk});
  Set(&node, {QuotaOf("uid:*", 20)});
  TestJob big(&node, "big", 1000);
  TestJob other(&node, "other", 2000);
  EXPECT_EQ(big.Lease(20, 20).count, 20u);
  EXPECT_EQ(other.Lease(20, 20).count, 20u);
  TestJob late(&node, "late", 1000);
  EXPECT_EQ(late.Lease(10, 10).outcome, kNoMemory);
  EXPECT_EQ(big.budget_chunks(), 10u) << "its user's other job is short";
  EXPECT_EQ(other.budget_chunks(), 20u);
  big.GiveBack(10);
  EXPECT_EQ(late.Lease(10, 10).count, 10u);
}

TEST(Quota, DoesNotMakeOthersShrinkForWhatItForbids) {
  TestNode node({20 * kChunk});
  Set(&node, {QuotaOf("uid:1000", 4)});
  TestJob bounded(&node, "bounded", 1000);
  TestJob other(&node, "other", 2000);
  EXPECT_EQ(bounded.Lease(4, 4).count, 4u);
  EXPECT_EQ(other.Lease(16, 16).count, 16u);
  EXPECT_EQ(bounded.Lease(8, 8).outcome, kNoMemory);
  EXPECT_EQ(other.budget_chunks(), 16u);
}

TEST(Quota, LoweredShrinksTheUsersJobsAndItsRemovalFreesThem) {
  TestNode node({64 * kChunk});
  TestJob first(&node, "a", 1000);
  TestJob second(&node, "b", 1000);
  first.Lease(20, 20);
  second.Lease(20, 20);
  Set(&node, {QuotaOf("uid:1000", 16)});
  EXPECT_EQ(first.budget_chunks(), 8u);
  EXPECT_EQ(second.budget_chunks(), 8u);
  EXPECT_EQ(first.Lease(1, 1).outcome, kNoMemory);
  PolicyChange change;
  change.remove = {"uid:1000"};
  ASSERT_TRUE(node.broker->ChangePolicy(change).ok());
  EXPECT_EQ(first.Lease(1, 1).count, 1u);
}

TEST(Quota, BoundsPinnedHostMemoryToo) {
  TestNode node;
  Set(&node, {QuotaOf("uid:1000", 0, 5)});
  TestJob first(&node, "a", 1000);
  TestJob second(&node, "b", 1000);
  EXPECT_EQ(first.Lease(4, 4, TM_WIRE_HOST).count, 4u);
  EXPECT_EQ(second.Lease(4, 1, TM_WIRE_HOST).count, 1u);
  EXPECT_EQ(second.Lease(1, 1, TM_WIRE_HOST).outcome, kNoMemory);
  EXPECT_EQ(second.Lease(30, 30).count, 30u) << "device memory is not bounded by it";
}

TEST(Quota, AnEntryOfTheUsersOwnWinsOverTheOneForAll) {
  TestNode node;
  Set(&node, {QuotaOf("uid:*", 4), QuotaOf("uid:1000", 8)});
  TestJob own(&node, "a", 1000);
  TestJob another(&node, "b", 2000);
  EXPECT_EQ(own.Lease(20, 1).count, 8u);
  EXPECT_EQ(another.Lease(20, 1).count, 4u);
}

TEST(Quota, GovernsNoJobByItsName) {
  TestNode node;
  Set(&node, {QuotaOf("uid:5", 2)});
  TestJob job(&node, "uid:5", 1000);
  EXPECT_EQ(job.Lease(20, 20).count, 20u);
  EXPECT_EQ(node.broker->Snapshot().jobs[0].policy, "default");
}

TEST(Quota, IsShownExplainedLoggedAndKeptOverARestart) {
  TestNode node;
  Set(&node, {QuotaOf("uid:1000", 10, 6)});
  {
    TestJob job(&node, "a", 1000);
    job.Lease(3, 3);
    const std::vector<UserSnapshot> users = node.broker->Snapshot().users;
    ASSERT_EQ(users.size(), 1u);
    EXPECT_EQ(users[0].uid, 1000u);
    EXPECT_EQ(users[0].jobs, 1u);
    EXPECT_EQ(users[0].device_held_bytes, std::vector<uint64_t>{3 * kChunk});
    EXPECT_EQ(users[0].device_quota_bytes, 10 * kChunk);
    EXPECT_EQ(users[0].host_quota_bytes, 6 * kChunk);
    const auto sentences = node.broker->ExplainPolicy(job.id());
    ASSERT_TRUE(sentences.ok());
    EXPECT_EQ(sentences->back(),
              "User 1000's quota, entry \"uid:1000\", bounds all jobs of the user together: "
              "6 MiB of 20 MiB on device 0; 0 bytes of 12 MiB of pinned host memory.");
  }
  EXPECT_THAT(node.broker->EventsAfter(0)[0].sentence,
              HasSubstr("uid 0 pid 7 changed the policy to generation 2: add [uid:1000]"));
  EXPECT_THAT(ReadFile(node.dir.path() + "/audit.log"), HasSubstr("add [uid:1000]"));
  node.Start(TestNode::NoReserve());
  TestJob job(&node, "a", 1000);
  EXPECT_EQ(job.Lease(20, 1).count, 10u);
}

}  // namespace
}  // namespace tidemark::daemon
