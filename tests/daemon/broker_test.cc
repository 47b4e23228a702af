#include "daemon/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

PolicyChange Default(const std::function<void(PolicyEntry*)>& edit) {
  PolicyEntry entry = DefaultEntry();
  edit(&entry);
  PolicyChange change;
  change.set.push_back(entry);
  change.actor = "test";
  return change;
}

PolicyChange Named(const std::string& name, const std::function<void(PolicyEntry*)>& edit) {
  return Default([&](PolicyEntry* entry) {
    entry->name = name;
    edit(entry);
  });
}

TEST(Broker, LeasesWithOneDescriptorPerChunkAndTakesThemBack) {
  TestNode node;
  TestJob job(&node, "train");
  ASSERT_EQ(job.welcome.outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(job.welcome.chunk_bytes, kChunk);
  EXPECT_EQ(job.welcome.device_index[0], 0);
  EXPECT_EQ(job.welcome.device_index[1], -1);
  EXPECT_EQ(job.Lease(10, 10).count, 10u);
  EXPECT_EQ(job.reply().fds.size(), 10u);
  EXPECT_EQ(job.Lease(3, 1, TM_WIRE_HOST).count, 3u);
  EXPECT_EQ(node.driver.Alive(0), 10);
  EXPECT_EQ(node.driver.Alive(-1), 3);
  EXPECT_EQ(job.Return(job.held).outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 0u);
  EXPECT_EQ(node.broker->Snapshot().devices[0].pooled_bytes, 10 * kChunk);
  node.now += absl::Seconds(6);
  node.broker->Tick();
  EXPECT_EQ(node.driver.Alive(0), 0);
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, GivesBackEverythingWhenJobDies) {
  TestNode node;
  TestJob job(&node, "train");
  job.Lease(20, 20);
  job.Lease(5, 5, TM_WIRE_HOST);
  job.Die();
  EXPECT_EQ(node.driver.Alive(0), 0);
  EXPECT_EQ(node.driver.Alive(-1), 0);
  EXPECT_TRUE(node.broker->Snapshot().jobs.empty());
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, RefusesAReturnOfWhatTheJobDoesNotHoldAndChangesNothing) {
  TestNode node;
  TestJob job(&node, "train");
  TestJob other(&node, "other");
  job.Lease(2, 2);
  other.Lease(1, 1);
  const tm_wire_done done = job.Return({job.held[0], other.held[0]});
  EXPECT_EQ(done.outcome, static_cast<uint32_t>(TM_WIRE_NOT_FOUND));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 3 * kChunk);
  EXPECT_EQ(job.Return({job.held[0]}, TM_WIRE_HOST).outcome,
            static_cast<uint32_t>(TM_WIRE_NOT_FOUND));
}

TEST(Broker, AnswersNoMemoryWithWhatIsMissing) {
  TestNode node({8 * kChunk});
  TestJob job(&node, "train");
  EXPECT_EQ(job.Lease(10, 1).count, 8u);
  const tm_wire_leased leased = job.Lease(4, 3);
  EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_EQ(leased.bytes_short, 3 * kChunk);
  EXPECT_THAT(leased.reason, HasSubstr("limit"));
  EXPECT_EQ(node.broker->Snapshot().lease_refusals_total, 2u);
}

TEST(Broker, HonoursTheBudgetThatTheUserAskedFor) {
  TestNode node;
  tm_wire_hello hello = HelloOf("train", 1);
  hello.device_budget_bytes = 5 * kChunk;
  Attachment attachment;
  node.broker->Hello({1, 1000}, hello.header, hello, &attachment);
  EXPECT_EQ(node.broker->Snapshot().jobs[0].devices[0].budget_bytes, 5 * kChunk);
  Request request;
  const tm_wire_lease lease = LeaseOf(6, 6);
  request.header = lease.header;
  request.body = lease;
  const Reply reply = node.broker->Serve(attachment, request);
  EXPECT_EQ(MessageIn<tm_wire_leased>(reply.bytes).bytes_short, kChunk);
}

TEST(Broker, ShrinksTheOneAboveItsShareWhenAnotherIsShort) {
  TestNode node({100 * kChunk});
  TestJob big(&node, "big");
  TestJob late(&node, "late");
  for (int i = 0; i < 2; ++i) big.Lease(40, 1);
  EXPECT_EQ(late.Lease(20, 20).count, 20u);
  EXPECT_EQ(big.budget_chunks(), 80u) << "nobody is short, nobody is squeezed";
  const tm_wire_leased leased = late.Lease(40, 40);
  EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_EQ(leased.bytes_short, 40 * kChunk);
  EXPECT_EQ(big.budget_chunks(), 50u);
  EXPECT_EQ(late.budget_chunks(), 50u);
  big.GiveBack(30);
  EXPECT_EQ(late.Lease(30, 30).count, 30u);
  EXPECT_EQ(big.budget_chunks(), 50u);
  EXPECT_EQ(late.Lease(1, 1).outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_EQ(big.budget_chunks(), 50u) << "at its share, a job is not squeezed further";
}

TEST(Broker, ForgetsAShortageThatIsNotRepeated) {
  TestNode node({100 * kChunk});
  TestJob big(&node, "big");
  TestJob late(&node, "late");
  for (int i = 0; i < 2; ++i) big.Lease(50, 1);
  late.Lease(10, 10);
  EXPECT_EQ(big.budget_chunks(), 90u);
  node.now += absl::Seconds(10);
  node.broker->Tick();
  EXPECT_EQ(big.budget_chunks(), 100u);
}

TEST(Broker, NeverStarvesAJobBelowItsGuarantee) {
  TestNode node({100 * kChunk});
  ASSERT_TRUE(node.broker
                  ->ChangePolicy(Named("vip",
                                       [](PolicyEntry* e) {
                                         e->guarantee_bytes = 70 * kChunk;
                                         e->priority = -100;
                                       }))
                  .ok());
  ASSERT_TRUE(
      node.broker->ChangePolicy(Named("rude", [](PolicyEntry* e) { e->priority = 100; })).ok());
  TestJob rude(&node, "rude");
  TestJob vip(&node, "vip");
  for (int i = 0; i < 2; ++i) rude.Lease(50, 1);
  vip.Lease(64, 64);
  EXPECT_EQ(rude.budget_chunks(), 36u);
  rude.GiveBack(64);
  EXPECT_EQ(vip.Lease(64, 64).count, 64u);
  EXPECT_EQ(vip.Lease(6, 6).outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  rude.GiveBack(6);
  EXPECT_EQ(vip.Lease(6, 6).count, 6u);
}

TEST(Broker, NeverAsksAPinnedJobToShrink) {
  TestNode node({100 * kChunk});
  TestJob big(&node, "big");
  TestJob late(&node, "late");
  for (int i = 0; i < 2; ++i) big.Lease(50, 1);
  ASSERT_TRUE(node.broker->SetPinned(big.id(), true).ok());
  late.Lease(40, 40);
  EXPECT_EQ(big.budget_chunks(), 100u);
  EXPECT_TRUE(absl::IsFailedPrecondition(node.broker->RequestEvict(big.id(), 1).status()));
  ASSERT_TRUE(node.broker->SetPinned(big.id(), false).ok());
  EXPECT_EQ(big.budget_chunks(), 60u);
}

TEST(Broker, LearnsFromTheDriverWhatOthersUseOnTheDevice) {
  TestNode node({100 * kChunk});
  node.driver.TakeForeign(0, 30 * kChunk);
  TestJob big(&node, "big");
  TestJob late(&node, "late");
  for (int i = 0; i < 2; ++i) big.Lease(35, 35);
  const tm_wire_leased leased = late.Lease(10, 10);
  EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_THAT(leased.reason, HasSubstr("device 0"));
  EXPECT_EQ(node.broker->Snapshot().devices[0].foreign_bytes, 30 * kChunk);
  EXPECT_EQ(node.broker->Snapshot().devices[0].free_bytes, 0u);
  EXPECT_EQ(big.budget_chunks(), 60u) << "of the 70 that the driver can give";
}

TEST(Broker, LeasesNothingWhenADriverCallFailsMidway) {
  TestNode node;
  TestJob job(&node, "train");
  node.driver.FailCreate(3, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(job.Lease(5, 5).outcome, static_cast<uint32_t>(TM_WIRE_INTERNAL));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 0u);
  node.driver.FailExports(true);
  EXPECT_EQ(job.Lease(5, 5).outcome, static_cast<uint32_t>(TM_WIRE_INTERNAL));
  EXPECT_TRUE(node.broker->Validate().ok());
  node.driver.FailExports(false);
  EXPECT_EQ(job.Lease(5, 5).count, 5u);
}

TEST(Broker, SaysWhenPinnedHostMemoryIsShort) {
  TestNode node({64 * kChunk}, TestNode::NoReserve(), 4 * kChunk);
  node.host.memlock_bytes = 8 << 20;
  node.broker->Tick();
  TestJob job(&node, "train");
  const tm_wire_leased leased = job.Lease(5, 5, TM_WIRE_HOST);
  EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_EQ(leased.bytes_short, kChunk);
  EXPECT_THAT(leased.reason, HasSubstr("host memory near device 0"));
  EXPECT_THAT(leased.reason, HasSubstr("memlock limit is 8 MiB"));
}

TEST(Broker, NeverTakesTheLastHostMemory) {
  TestNode node;
  node.host.available_bytes = HostFloorBytes(node.host) + 3 * kChunk;
  node.broker->Tick();
  TestJob job(&node, "train");
  EXPECT_EQ(job.Lease(5, 1, TM_WIRE_HOST).count, 3u);
}

TEST(Broker, DestroysChunksBetweenUsers) {
  TestNode node({8 * kChunk});
  TestJob first(&node, "first", 1000);
  TestJob second(&node, "second", 2000);
  first.Lease(8, 8);
  const std::vector<uint64_t> former = first.held;
  first.GiveBack(8);
  EXPECT_EQ(second.Lease(8, 8).count, 8u);
  for (const uint64_t chunk : second.held) {
    EXPECT_EQ(std::count(former.begin(), former.end(), chunk), 0);
  }
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, SharesChunksWithAnotherProcessOfTheUserUntilBothAreGone) {
  TestNode node;
  TestJob exporter(&node, "exporter", 1000);
  TestJob importer(&node, "importer", 1000);
  TestJob stranger(&node, "stranger", 2000);
  exporter.Lease(3, 3);
  EXPECT_EQ(exporter.Ask<tm_wire_done>(ShareOf(TM_WIRE_SHARE, 9, exporter.held, 3)).outcome,
            static_cast<uint32_t>(TM_WIRE_OK));
  const tm_wire_share open = ShareOf(TM_WIRE_OPEN_SHARE, 9, {}, 64);
  EXPECT_EQ(stranger.Ask<tm_wire_leased>(open).outcome, static_cast<uint32_t>(TM_WIRE_REFUSED));
  const tm_wire_leased leased = importer.Ask<tm_wire_leased>(open);
  ASSERT_EQ(leased.count, 3u);
  EXPECT_EQ(leased.chunk_id[0], exporter.held[0]);
  EXPECT_EQ(importer.reply().fds.size(), 3u);
  exporter.Die();
  EXPECT_EQ(node.driver.Alive(0), 3) << "the importer keeps them";
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 3 * kChunk);
  EXPECT_EQ(importer.Ask<tm_wire_leased>(open).outcome, static_cast<uint32_t>(TM_WIRE_NOT_FOUND));
  importer.Return({leased.chunk_id, leased.chunk_id + 3});
  node.broker->Reap();
  EXPECT_EQ(node.driver.Alive(0), 0);
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, OnlySharesWhatTheJobWasLeased) {
  TestNode node;
  TestJob job(&node, "train");
  job.Adopt({uint64_t{1} << 63 | 5});
  EXPECT_EQ(job.Ask<tm_wire_done>(ShareOf(TM_WIRE_SHARE, 9, {uint64_t{1} << 63 | 5}, 1)).outcome,
            static_cast<uint32_t>(TM_WIRE_NOT_FOUND));
}

TEST(Broker, CountsWhatAJobBringsAfterARestart) {
  TestNode node({64 * kChunk});
  std::vector<uint64_t> held;
  uint64_t id = 0;
  {
    TestJob job(&node, "train");
    job.Lease(10, 10);
    held = job.held;
    id = job.id();
  }
  node.Start(TestNode::NoReserve());
  TestJob job(&node, "train", 1000, id);
  EXPECT_EQ(job.id(), id);
  held.push_back(uint64_t{1} << 63 | 1);
  EXPECT_EQ(job.Adopt(held).outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 11 * kChunk);
  EXPECT_EQ(node.broker->Snapshot().reconnects_total, 1u);
  const auto runs = node.broker->MemoryMap(id);
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_TRUE(runs->at(0).adopted);
  EXPECT_EQ(runs->at(0).count, 10u);
  job.Lease(53, 53);
  EXPECT_EQ(job.Lease(1, 1).outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
  EXPECT_EQ(job.Return(held).outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, 53 * kChunk);
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, RefusesAnAdoptionThatCannotBeTrue) {
  TestNode node({8 * kChunk});
  TestJob job(&node, "train");
  TestJob other(&node, "other");
  other.Lease(1, 1);
  EXPECT_EQ(job.Adopt({1, 2, other.held[0]}).outcome, static_cast<uint32_t>(TM_WIRE_BAD_REQUEST));
  EXPECT_EQ(node.broker->Snapshot().devices[0].leased_bytes, kChunk);
  EXPECT_EQ(job.Adopt({1, 2, 3, 4, 5, 6, 7, 8}).outcome,
            static_cast<uint32_t>(TM_WIRE_BAD_REQUEST));
  EXPECT_TRUE(node.broker->Validate().ok());
}

TEST(Broker, GivesALiveJobsIdToNobodyElse) {
  TestNode node;
  TestJob job(&node, "train", 1000, 0, 77);
  job.Lease(4, 4);
  TestJob thief(&node, "thief", 1000, job.id(), 78);
  EXPECT_NE(thief.id(), job.id());
  TestJob again(&node, "train", 1000, job.id(), 77);
  EXPECT_EQ(again.id(), job.id());
  node.broker->Reap();
  EXPECT_EQ(node.driver.Alive(0), 0) << "the former connection's leases ended with it";
  job.Lease(1, 1);
  EXPECT_NE(job.reply().close_reason, "");
  TestJob unknown(&node, "x", 1000, 4242);
  EXPECT_NE(unknown.id(), 4242u);
}

TEST(Broker, RefusesUsersThatAreNotAllowed) {
  BrokerOptions options = TestNode::NoReserve();
  options.allow_every_uid = false;
  options.allow_uids = {1000};
  TestNode node({8 * kChunk}, options);
  TestJob allowed(&node, "a", 1000);
  TestJob foreign(&node, "b", 1001);
  EXPECT_EQ(allowed.welcome.outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(foreign.welcome.outcome, static_cast<uint32_t>(TM_WIRE_REFUSED));
  EXPECT_THAT(foreign.welcome.reason, HasSubstr("uid 1001 may not attach"));
}

TEST(Broker, RefusesAJobWhoseDevicesItDoesNotManage) {
  TestNode node;
  tm_wire_hello hello = HelloOf("train", 1);
  hello.device_uuid[0][0] ^= 1;
  Attachment attachment;
  const Reply reply = node.broker->Hello({1, 1000}, hello.header, hello, &attachment);
  EXPECT_EQ(MessageIn<tm_wire_welcome>(reply.bytes).outcome,
            static_cast<uint32_t>(TM_WIRE_REFUSED));
  EXPECT_EQ(attachment.job, kNobody);
}

TEST(Broker, PublishesAPolicyChangeInTheJobsPageAndInTheAuditLog) {
  TestNode node;
  TestJob job(&node, "train");
  const uint64_t before = job.policy().sequence;
  const absl::StatusOr<Policy> changed =
      node.broker->ChangePolicy(Named("train", [](PolicyEntry* e) {
        e->level = Level::kAggressive;
        e->device_budget_bytes = 7 * kChunk;
        e->max_slowdown_permille = 50;
        e->movable_classes = {"gradient", "activation"};
      }));
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(job.policy().level, static_cast<uint32_t>(TM_WIRE_LEVEL_AGGRESSIVE));
  EXPECT_EQ(job.policy().generation, changed->generation);
  EXPECT_EQ(job.policy().max_slowdown_permille, 50u);
  EXPECT_EQ(job.policy().movable_classes,
            1u << TM_WIRE_CLASS_GRADIENT | 1u << TM_WIRE_CLASS_ACTIVATION);
  EXPECT_EQ(job.budget_chunks(), 7u);
  EXPECT_EQ(job.policy().sequence, before + 2);
  EXPECT_THAT(ReadFile(node.dir / "audit.log"), HasSubstr("add [train]"));
  node.Start(TestNode::NoReserve());
  EXPECT_EQ(node.broker->GetPolicy().entries.at("train").device_budget_bytes, 7 * kChunk);
}

TEST(Broker, ChangesNothingWhenThePolicyCannotBeSaved) {
  TestNode node;
  TestJob job(&node, "train");
  std::filesystem::create_directory(node.dir / "audit.log");
  const auto changed =
      node.broker->ChangePolicy(Default([](PolicyEntry* e) { e->level = Level::kOff; }));
  EXPECT_THAT(std::string(changed.status().message()), HasSubstr("the policy was not changed"));
  EXPECT_EQ(node.broker->GetPolicy().generation, 1u);
  EXPECT_EQ(job.policy().level, static_cast<uint32_t>(TM_WIRE_LEVEL_NORMAL));
}

TEST(Broker, PassesRequestsToMoveThroughThePage) {
  TestNode node;
  TestJob job(&node, "train");
  job.Lease(4, 4);
  EXPECT_EQ(*node.broker->RequestEvict(job.id(), uint64_t{1} << 40), 4 * kChunk);
  EXPECT_EQ(*node.broker->RequestEvict(job.id(), 5), 5u);
  EXPECT_EQ(job.policy().evict_request_bytes, 4 * kChunk + 5) << "it only grows";
  EXPECT_EQ(*node.broker->RequestPrefetch(job.id(), 5), 0u);
  EXPECT_TRUE(absl::IsNotFound(node.broker->RequestEvict(999, 5).status()));
}

TEST(Broker, ExplainsAJobsBudgetInSentences) {
  TestNode node({100 * kChunk});
  TestJob big(&node, "big");
  TestJob late(&node, "late");
  for (int i = 0; i < 2; ++i) big.Lease(50, 1);
  late.Lease(10, 10);
  const auto sentences = node.broker->ExplainPolicy(big.id());
  ASSERT_TRUE(sentences.ok());
  EXPECT_THAT(sentences->at(0), HasSubstr("\"default\" applies, because there is none"));
  EXPECT_THAT(sentences->at(2), HasSubstr("it holds 200 MiB and may hold 180 MiB of the 200 MiB"));
  EXPECT_THAT(sentences->at(2), HasSubstr("Job 2 lately asked for 20 MiB more."));
  EXPECT_THAT(sentences->at(2), HasSubstr("It is asked to give 20 MiB back."));
}

TEST(Broker, ExplainsWhichFieldsOfAPolicyHoldBackAndWhichAreNotActedOn) {
  TestNode node({100 * kChunk});
  TestJob job(&node, "job");
  EXPECT_THAT(*node.broker->ExplainPolicy(job.id()),
              Each(AllOf(Not(HasSubstr("class")), Not(HasSubstr("slow-down")))));
  ASSERT_TRUE(node.broker
                  ->ChangePolicy(Default([](PolicyEntry* entry) {
                    entry->movable_classes = {"activation", "unknown"};
                    entry->max_slowdown_permille = 55;
                    entry->level = Level::kAggressive;
                  }))
                  .ok());
  EXPECT_THAT(*node.broker->ExplainPolicy(job.id()),
              AllOf(Contains(HasSubstr("another class than activation, unknown")),
                    Contains(HasSubstr("slow-down of 5.5 % is kept but not acted on")),
                    Contains(HasSubstr("acts as normal does so far"))));
}

TEST(Broker, TellsWhatHappenedAsEvents) {
  TestNode node({8 * kChunk});
  TestJob job(&node, "train");
  job.Lease(8, 8);
  job.Lease(1, 1);
  job.Die();
  std::vector<std::string> kinds;
  for (const Event& event : node.broker->EventsAfter(0)) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"job_attached", "lease_refused", "job_detached"}));
  node.broker->WaitForEvent(2, absl::InfiniteDuration());
  EXPECT_EQ(node.broker->EventsAfter(2).size(), 1u);
}

}  // namespace
}  // namespace tidemark::daemon
