// Deterministic simulation: a seed chooses jobs, requests, driver faults, deaths and restarts;
// after each step ledger, pool and driver must agree and no job may hold more than its limit.

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <random>

#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kDeviceChunks = 48;

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed), node_({kDeviceChunks * kChunk}) {}

  void Step() {
    node_.now += absl::Milliseconds(static_cast<int64_t>(Below(700)));
    switch (Below(16)) {
      case 0:
        return Attach();
      case 1:
        return Kill();
      case 2:
        return node_.broker->Tick();
      case 3:
        return node_.driver.FailCreate(1 + Below(6), CUDA_ERROR_OUT_OF_MEMORY);
      case 4:
        return Below(12) == 0 ? Restart() : Obey();
      case 5:
        return Share();
      case 6:
        return Open();
      case 7:
        return ChangePolicy();
      case 8:
        return Pin();
      case 9:
      case 10:
        return Return();
      default:
        return Lease();
    }
  }

  void Check() {
    const absl::Status valid = node_.broker->Validate();
    ASSERT_TRUE(valid.ok()) << valid;
    const NodeSnapshot snapshot = node_.broker->Snapshot();
    const DeviceSnapshot& device = snapshot.devices[0];
    EXPECT_EQ(device.leased_bytes + device.pooled_bytes + device.foreign_bytes + device.free_bytes,
              device.total_bytes);
    EXPECT_LE(device.leased_bytes + device.pooled_bytes, device.total_bytes);
    uint64_t charged = 0;
    for (const JobSnapshot& job : snapshot.jobs) charged += job.devices[0].leased_bytes;
    EXPECT_EQ(charged, device.leased_bytes);
    EXPECT_EQ(snapshot.jobs.size(), jobs_.size());
  }

  // When everybody leaves, the driver has everything back.
  void End() {
    while (!jobs_.empty()) Kill();
    node_.now += absl::Hours(1);
    node_.broker->Tick();
    node_.broker->Reap();
    EXPECT_EQ(node_.driver.Alive(0), 0);
    EXPECT_EQ(node_.driver.Alive(-1), 0);
  }

 private:
  struct Player {
    std::unique_ptr<TestJob> job;
    std::string name;
    uid_t uid;
    std::vector<uint64_t> imported;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  Player* Any() {
    if (jobs_.empty()) return nullptr;
    return &*std::next(jobs_.begin(), static_cast<long>(Below(jobs_.size())));
  }

  void Attach() {
    if (jobs_.size() >= 4) return;
    Player player;
    player.name = Below(2) == 0 ? "one" : "two";
    player.uid = static_cast<uid_t>(1000 + Below(2));
    player.job = std::make_unique<TestJob>(&node_, player.name, player.uid);
    ASSERT_EQ(player.job->welcome.outcome, static_cast<uint32_t>(TM_WIRE_OK));
    jobs_.push_back(std::move(player));
  }

  void Kill() {
    if (jobs_.empty()) return;
    const auto victim = std::next(jobs_.begin(), static_cast<long>(Below(jobs_.size())));
    victim->job->Die(Below(2) == 0);
    jobs_.erase(victim);
  }

  // The daemon dies; jobs come back with what they held, its imports excepted.
  void Restart() {
    node_.Start(TestNode::NoReserve());
    for (Player& player : jobs_) {
      const TestJob& former = *player.job;
      auto again = std::make_unique<TestJob>(&node_, player.name, player.uid, former.id());
      ASSERT_EQ(again->id(), former.id());
      again->held = former.held;
      again->host_held = former.host_held;
      player.imported.clear();
      ASSERT_EQ(again->Adopt(again->held).outcome, static_cast<uint32_t>(TM_WIRE_OK));
      ASSERT_EQ(again->Adopt(again->host_held, TM_WIRE_HOST).outcome,
                static_cast<uint32_t>(TM_WIRE_OK));
      player.job = std::move(again);
    }
    tokens_.clear();
  }

  // A job does what its policy page asks: evicts down to its budget.
  void Obey() {
    Player* player = Any();
    if (player == nullptr) return;
    TestJob& job = *player->job;
    if (job.held.size() > job.budget_chunks()) job.GiveBack(job.held.size() - job.budget_chunks());
  }

  void Lease() {
    Player* player = Any();
    if (player == nullptr) return;
    const auto count = static_cast<uint32_t>(1 + Below(20));
    const auto at_least = static_cast<uint32_t>(1 + Below(count));
    const uint32_t place = Below(4) == 0 ? TM_WIRE_HOST : TM_WIRE_DEVICE;
    const tm_wire_leased leased = player->job->Lease(count, at_least, place);
    if (leased.outcome == TM_WIRE_OK) {
      EXPECT_GE(leased.count, at_least);
      EXPECT_LE(leased.count, count);
      EXPECT_EQ(player->job->reply().fds.size(), leased.count);
      if (place == TM_WIRE_DEVICE) CheckQuota(player->uid);
    } else {
      EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_NO_MEMORY));
      EXPECT_EQ(leased.count, 0u);
      EXPECT_GT(leased.bytes_short, 0u);
      EXPECT_NE(leased.reason[0], 0);
    }
  }

  // Nothing is granted above a user's quota, however the user came to hold the rest.
  void CheckQuota(uid_t uid) {
    for (const UserSnapshot& user : node_.broker->Snapshot().users) {
      if (user.uid != uid || user.device_quota_bytes == 0) continue;
      EXPECT_LE(user.device_held_bytes[0], user.device_quota_bytes);
    }
  }

  void Return() {
    Player* player = Any();
    if (player == nullptr) return;
    if (!player->imported.empty()) {
      EXPECT_EQ(player->job->Return({player->imported.back()}).outcome,
                static_cast<uint32_t>(TM_WIRE_OK));
      player->imported.pop_back();
    } else if (!player->job->held.empty()) {
      player->job->GiveBack(1 + Below(player->job->held.size()));
    }
  }

  void Share() {
    Player* player = Any();
    if (player == nullptr || player->job->held.empty()) return;
    const auto token = static_cast<uint8_t>(1 + Below(200));
    const std::vector<uint64_t> first(1, player->job->held.front());
    const tm_wire_done done =
        player->job->Ask<tm_wire_done>(ShareOf(TM_WIRE_SHARE, token, first, 1));
    if (done.outcome == TM_WIRE_OK) tokens_.push_back(token);
  }

  void Open() {
    Player* player = Any();
    if (player == nullptr || tokens_.empty()) return;
    const uint8_t token = tokens_[Below(tokens_.size())];
    const tm_wire_leased leased =
        player->job->Ask<tm_wire_leased>(ShareOf(TM_WIRE_OPEN_SHARE, token, {}, 1));
    if (leased.outcome == TM_WIRE_OK) player->imported.push_back(leased.chunk_id[0]);
  }

  void ChangePolicy() {
    PolicyEntry entry = DefaultEntry();
    entry.name = Below(2) == 0 ? "one" : "default";
    entry.priority = static_cast<int32_t>(Below(3));
    entry.guarantee_bytes = Below(2) * 16 * kChunk;
    entry.level = Below(4) == 0 ? Level::kOff : Level::kNormal;
    entry.device_budget_bytes = Below(3) == 0 ? 30 * kChunk : 0;
    PolicyChange change;
    change.set.push_back(entry);
    PolicyEntry quota = DefaultEntry();
    quota.name = Below(2) == 0 ? "uid:1001" : "uid:*";
    quota.device_budget_bytes = Below(3) * 20 * kChunk;
    change.set.push_back(quota);
    change.actor = "simulation";
    ASSERT_TRUE(node_.broker->ChangePolicy(change).ok());
  }

  void Pin() {
    if (Player* player = Any()) {
      ASSERT_TRUE(node_.broker->SetPinned(player->job->id(), Below(3) == 0).ok());
    }
  }

  std::mt19937_64 random_;
  TestNode node_;
  std::list<Player> jobs_;
  std::vector<uint8_t> tokens_;
};

TEST(BrokerSimulation, KeepsItsBooksUnderEverySeed) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Simulation simulation(seed);
    for (int step = 0; step < 300; ++step) {
      simulation.Step();
      simulation.Check();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
    simulation.End();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
}

// Two greedy jobs that obey their pages end at their fair shares, whoever came first.
TEST(BrokerSimulation, GreedyJobsSettleAtTheirFairShares) {
  TestNode node({100 * kChunk});
  std::vector<std::unique_ptr<TestJob>> jobs;
  for (const char* name : {"a", "b", "c"}) jobs.push_back(std::make_unique<TestJob>(&node, name));
  for (int round = 0; round < 60; ++round) {
    for (auto& job : jobs) {
      if (job->held.size() > job->budget_chunks()) {
        job->GiveBack(job->held.size() - job->budget_chunks());
      }
      job->Lease(10, 1);
      ASSERT_TRUE(node.broker->Validate().ok());
    }
  }
  for (auto& job : jobs) {
    EXPECT_GE(job->held.size(), 33u);
    EXPECT_LE(job->held.size(), 34u);
  }
}

}  // namespace
}  // namespace tidemark::daemon
