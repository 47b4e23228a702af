#include "daemon/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tidemark::daemon {
namespace {

constexpr Slot kDevice{0, TM_WIRE_DEVICE};

TEST(Ledger, ChargesTheExporterUntilItLetsGoThenTheNextHolder) {
  Ledger ledger;
  ledger.AddJob(1, 1000);
  ledger.AddJob(2, 1000);
  ledger.AddIdle(10, kDevice, 1000);
  ledger.Lease(10, 1);
  ASSERT_TRUE(ledger.Import(10, 2).ok());
  EXPECT_EQ(ledger.HeldChunks(1, kDevice), 1u);
  EXPECT_EQ(ledger.HeldChunks(2, kDevice), 0u);
  EXPECT_EQ(*ledger.Release(10, 1), LetGo::kStillHeld);
  EXPECT_EQ(ledger.HeldChunks(2, kDevice), 1u);
  EXPECT_EQ(*ledger.Release(10, 2), LetGo::kIdle);
  EXPECT_TRUE(ledger.Validate().ok());
}

TEST(Ledger, NeverRecyclesAChunkThatADeadJobHeld) {
  Ledger ledger;
  ledger.AddJob(1, 1000);
  ledger.AddJob(2, 1000);
  for (const ChunkId chunk : {10, 11}) {
    ledger.AddIdle(chunk, kDevice, 1000);
    ledger.Lease(chunk, 1);
  }
  ASSERT_TRUE(ledger.Import(11, 2).ok());
  EXPECT_EQ(ledger.RemoveJob(1), std::vector<ChunkId>{10});
  EXPECT_EQ(*ledger.Release(11, 2), LetGo::kDestroy);
  EXPECT_EQ(ledger.LeasedChunks(kDevice), 0u);
  EXPECT_EQ(ledger.IdleChunks(kDevice), 0u);
  EXPECT_TRUE(ledger.Validate().ok());
}

TEST(Ledger, RefusesAForeignUsersImport) {
  Ledger ledger;
  ledger.AddJob(1, 1000);
  ledger.AddJob(2, 2000);
  ledger.AddIdle(10, kDevice, 1000);
  ledger.Lease(10, 1);
  EXPECT_TRUE(absl::IsPermissionDenied(ledger.Import(10, 2)));
  EXPECT_TRUE(absl::IsNotFound(ledger.Import(11, 1)));
}

TEST(Ledger, RefusesToCountTheSameChunkTwice) {
  Ledger ledger;
  ledger.AddJob(1, 1000);
  ledger.AddIdle(10, kDevice, 1000);
  EXPECT_TRUE(absl::IsAlreadyExists(ledger.Adopt(10, kDevice, 1)));
  ASSERT_TRUE(ledger.Adopt(77, kDevice, 1).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(ledger.Adopt(77, kDevice, 1)));
  EXPECT_EQ(*ledger.Release(77, 1), LetGo::kForgotten);
  EXPECT_TRUE(absl::IsNotFound(ledger.Release(77, 1).status()));
}

// The naive model: a flat list of chunks, searched for every question.
struct NaiveChunk {
  ChunkId id;
  Slot slot;
  uid_t uid;
  JobId owner = kNobody;
  bool suspect = false;
  bool adopted = false;
  std::vector<JobId> holds;  // one entry per hold
};

class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  void Step() {
    switch (Below(9)) {
      case 0:
        return AddJob();
      case 1:
        return Below(4) == 0 ? RemoveJob() : AddIdle();
      case 2:
        return AddIdle();
      case 3:
      case 4:
        return Lease();
      case 5:
        return Import();
      case 6:
        return Adopt();
      case 7:
        return Release();
      default:
        return RemoveIdle();
    }
  }

  void Check() const {
    const absl::Status valid = ledger_.Validate();
    ASSERT_TRUE(valid.ok()) << valid;
    for (const Slot slot : kSlots) {
      EXPECT_EQ(ledger_.LeasedChunks(slot),
                Count([&](const NaiveChunk& c) { return c.slot == slot && c.owner != kNobody; }));
      EXPECT_EQ(ledger_.IdleChunks(slot),
                Count([&](const NaiveChunk& c) { return c.slot == slot && c.owner == kNobody; }));
      EXPECT_EQ(ledger_.AdoptedChunks(slot),
                Count([&](const NaiveChunk& c) { return c.slot == slot && c.adopted; }));
      for (const auto& [job, uid] : jobs_) {
        EXPECT_EQ(ledger_.HeldChunks(job, slot), Count([&, j = job](const NaiveChunk& c) {
                    return c.slot == slot && c.owner == j;
                  }));
      }
    }
  }

 private:
  static constexpr Slot kSlots[] = {{0, TM_WIRE_DEVICE}, {0, TM_WIRE_HOST}, {1, TM_WIRE_DEVICE}};

  template <typename Claim>
  uint64_t Count(Claim claim) const {
    return static_cast<uint64_t>(std::count_if(chunks_.begin(), chunks_.end(), claim));
  }
  uint64_t Below(uint64_t n) { return random_() % n; }
  Slot AnySlot() { return kSlots[Below(3)]; }
  // A job, or end() when there is none.
  std::map<JobId, uid_t>::iterator AnyJob() {
    return jobs_.empty() ? jobs_.end()
                         : std::next(jobs_.begin(), static_cast<long>(Below(jobs_.size())));
  }

  void AddJob() {
    if (jobs_.size() >= 5) return;
    const JobId job = next_job_++;
    jobs_[job] = static_cast<uid_t>(Below(2));
    ledger_.AddJob(job, jobs_[job]);
  }

  void AddIdle() {
    NaiveChunk chunk{next_chunk_++, AnySlot(), static_cast<uid_t>(Below(2)), kNobody, false,
                     false,         {}};
    ledger_.AddIdle(chunk.id, chunk.slot, chunk.uid);
    chunks_.push_back(chunk);
  }

  void RemoveIdle() {
    const auto idle = std::find_if(chunks_.begin(), chunks_.end(),
                                   [](const NaiveChunk& c) { return c.owner == kNobody; });
    if (idle == chunks_.end()) return;
    ledger_.RemoveIdle(idle->id);
    chunks_.erase(idle);
  }

  void Lease() {
    const auto job = AnyJob();
    if (job == jobs_.end()) return;
    for (NaiveChunk& chunk : chunks_) {
      if (chunk.owner != kNobody || chunk.uid != job->second) continue;
      ledger_.Lease(chunk.id, job->first);
      chunk.owner = job->first;
      chunk.holds = {job->first};
      return;
    }
  }

  void Import() {
    const auto job = AnyJob();
    if (job == jobs_.end() || chunks_.empty()) return;
    NaiveChunk& chunk = chunks_[Below(chunks_.size())];
    const bool legal = !chunk.adopted && chunk.owner != kNobody && chunk.uid == job->second;
    ASSERT_EQ(ledger_.Import(chunk.id, job->first).ok(), legal);
    if (legal) chunk.holds.push_back(job->first);
  }

  void Adopt() {
    const auto job = AnyJob();
    if (job == jobs_.end()) return;
    NaiveChunk chunk{(uint64_t{1} << 63) | next_chunk_++,
                     AnySlot(),
                     job->second,
                     job->first,
                     false,
                     true,
                     {job->first}};
    ASSERT_TRUE(ledger_.Adopt(chunk.id, chunk.slot, job->first).ok());
    chunks_.push_back(chunk);
  }

  // Takes one hold away as the ledger's rule says; true when the chunk is gone.
  bool DropHolds(NaiveChunk* chunk, JobId job) {
    if (chunk->owner != job) return false;
    if (std::find(chunk->holds.begin(), chunk->holds.end(), job) != chunk->holds.end())
      return false;
    chunk->owner = chunk->holds.empty()
                       ? kNobody
                       : *std::min_element(chunk->holds.begin(), chunk->holds.end());
    return chunk->owner == kNobody && (chunk->suspect || chunk->adopted);
  }

  void Release() {
    const auto job = AnyJob();
    if (job == jobs_.end() || chunks_.empty()) return;
    const auto chunk = chunks_.begin() + static_cast<long>(Below(chunks_.size()));
    const auto hold = std::find(chunk->holds.begin(), chunk->holds.end(), job->first);
    const bool legal = hold != chunk->holds.end();
    ASSERT_EQ(ledger_.Release(chunk->id, job->first).ok(), legal);
    if (!legal) return;
    chunk->holds.erase(hold);
    if (DropHolds(&*chunk, job->first)) chunks_.erase(chunk);
  }

  void RemoveJob() {
    const auto job = AnyJob();
    if (job == jobs_.end()) return;
    std::vector<ChunkId> ended;
    for (auto chunk = chunks_.begin(); chunk != chunks_.end();) {
      const bool held = std::count(chunk->holds.begin(), chunk->holds.end(), job->first) > 0;
      if (held) {
        chunk->suspect = true;
        std::erase(chunk->holds, job->first);
      }
      const bool gone = held && DropHolds(&*chunk, job->first);
      if (gone && !chunk->adopted) ended.push_back(chunk->id);
      chunk = gone ? chunks_.erase(chunk) : std::next(chunk);
    }
    std::sort(ended.begin(), ended.end());
    EXPECT_EQ(ledger_.RemoveJob(job->first), ended);
    jobs_.erase(job);
  }

  std::mt19937_64 random_;
  Ledger ledger_;
  std::map<JobId, uid_t> jobs_;
  std::vector<NaiveChunk> chunks_;
  JobId next_job_ = 1;
  ChunkId next_chunk_ = 1;
};

TEST(Ledger, AgreesWithTheNaiveModelOverRandomOperations) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Model model(seed);
    for (int step = 0; step < 1000; ++step) {
      model.Step();
      model.Check();
      ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed << " step " << step;
    }
  }
}

}  // namespace
}  // namespace tidemark::daemon
