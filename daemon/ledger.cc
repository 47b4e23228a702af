#include "daemon/ledger.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "daemon/check.h"

namespace tidemark::daemon {
namespace {

template <typename Map, typename Key>
uint64_t CountAt(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? 0 : found->second;
}

}  // namespace

Ledger::Job& Ledger::JobAt(JobId job) {
  const auto found = jobs_.find(job);
  TIDEMARK_CHECK(found != jobs_.end());
  return found->second;
}

void Ledger::AddJob(JobId job, uid_t uid) {
  TIDEMARK_CHECK(job != kNobody);
  const auto [place, added] = jobs_.emplace(job, Job());
  TIDEMARK_CHECK(added);
  place->second.uid = uid;
}

void Ledger::AddIdle(ChunkId chunk, Slot slot, uid_t uid) {
  const auto [place, added] = chunks_.emplace(chunk, Chunk());
  TIDEMARK_CHECK(added);
  place->second.slot = slot;
  place->second.uid = uid;
  ++totals_[slot].idle;
}

void Ledger::RemoveIdle(ChunkId chunk) {
  const auto found = chunks_.find(chunk);
  TIDEMARK_CHECK(found != chunks_.end() && found->second.holds.empty());
  --totals_[found->second.slot].idle;
  chunks_.erase(found);
}

void Ledger::Charge(Chunk& chunk, JobId job) {
  chunk.owner = job;
  ++JobAt(job).charged[chunk.slot];
}

void Ledger::Uncharge(const Chunk& chunk) {
  uint64_t& charged = JobAt(chunk.owner).charged[chunk.slot];
  TIDEMARK_CHECK(charged > 0);
  --charged;
}

void Ledger::Lease(ChunkId id, JobId job) {
  const auto found = chunks_.find(id);
  TIDEMARK_CHECK(found != chunks_.end() && found->second.holds.empty());
  Chunk& chunk = found->second;
  TIDEMARK_CHECK(chunk.uid == JobAt(job).uid);
  chunk.holds[job] = 1;
  Charge(chunk, job);
  JobAt(job).held.insert(id);
  Totals& totals = totals_[chunk.slot];
  --totals.idle;
  ++totals.leased;
}

absl::Status Ledger::Adopt(ChunkId chunk, Slot slot, JobId job) {
  if (chunks_.count(chunk) != 0) {
    return absl::AlreadyExistsError(
        absl::StrCat("chunk ", chunk, " belongs to this daemon and cannot be adopted"));
  }
  Job& adopter = JobAt(job);
  if (!adopter.adopted.emplace(chunk, slot).second) {
    return absl::AlreadyExistsError(absl::StrCat("chunk ", chunk, " is adopted already"));
  }
  ++adopter.charged[slot];
  ++totals_[slot].leased;
  ++totals_[slot].adopted;
  return absl::OkStatus();
}

absl::Status Ledger::Import(ChunkId id, JobId job) {
  const auto found = chunks_.find(id);
  if (found == chunks_.end() || found->second.holds.empty()) {
    return absl::NotFoundError(absl::StrCat("chunk ", id, " is held by nobody"));
  }
  if (found->second.uid != JobAt(job).uid) {
    return absl::PermissionDeniedError(absl::StrCat("chunk ", id, " belongs to another user"));
  }
  ++found->second.holds[job];
  JobAt(job).held.insert(id);
  return absl::OkStatus();
}

LetGo Ledger::DropHold(ChunkId id, Chunk& chunk, JobId job) {
  JobAt(job).held.erase(id);
  chunk.holds.erase(job);
  if (chunk.owner == job) {
    Uncharge(chunk);
    chunk.owner = kNobody;
    if (!chunk.holds.empty()) Charge(chunk, chunk.holds.begin()->first);
  }
  if (!chunk.holds.empty()) return LetGo::kStillHeld;
  Totals& totals = totals_[chunk.slot];
  --totals.leased;
  if (!chunk.suspect) {
    ++totals.idle;
    return LetGo::kIdle;
  }
  chunks_.erase(id);
  return LetGo::kDestroy;
}

absl::StatusOr<LetGo> Ledger::Release(ChunkId id, JobId job) {
  Job& holder = JobAt(job);
  const auto adopted = holder.adopted.find(id);
  if (adopted != holder.adopted.end()) {
    const Slot slot = adopted->second;
    holder.adopted.erase(adopted);
    --holder.charged[slot];
    --totals_[slot].leased;
    --totals_[slot].adopted;
    return LetGo::kForgotten;
  }
  const auto found = chunks_.find(id);
  if (found == chunks_.end() || found->second.holds.count(job) == 0) {
    return absl::NotFoundError(absl::StrCat("chunk ", id, " is not held by job ", job));
  }
  uint32_t& holds = found->second.holds[job];
  if (holds > 1) {
    --holds;
    return LetGo::kStillHeld;
  }
  return DropHold(id, found->second, job);
}

std::vector<ChunkId> Ledger::RemoveJob(JobId job) {
  std::vector<ChunkId> ended;
  Job& leaving = JobAt(job);
  for (const auto& [chunk, slot] : leaving.adopted) {
    --totals_[slot].leased;
    --totals_[slot].adopted;
  }
  const std::set<ChunkId> held = leaving.held;
  for (const ChunkId id : held) {
    Chunk& chunk = chunks_.at(id);
    chunk.suspect = true;
    if (DropHold(id, chunk, job) == LetGo::kDestroy) ended.push_back(id);
  }
  jobs_.erase(job);
  return ended;
}

bool Ledger::Holds(JobId job, ChunkId chunk, Slot slot) const {
  const auto holder = jobs_.find(job);
  if (holder == jobs_.end()) return false;
  const auto adopted = holder->second.adopted.find(chunk);
  if (adopted != holder->second.adopted.end()) return adopted->second == slot;
  return holder->second.held.count(chunk) != 0 && chunks_.at(chunk).slot == slot;
}

bool Ledger::Owns(JobId job, ChunkId chunk) const {
  const auto found = chunks_.find(chunk);
  return found != chunks_.end() && job != kNobody && found->second.owner == job;
}

uint64_t Ledger::HeldChunks(JobId job, Slot slot) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : CountAt(found->second.charged, slot);
}

uint64_t Ledger::LeasedChunks(Slot slot) const {
  const auto found = totals_.find(slot);
  return found == totals_.end() ? 0 : found->second.leased;
}

uint64_t Ledger::AdoptedChunks(Slot slot) const {
  const auto found = totals_.find(slot);
  return found == totals_.end() ? 0 : found->second.adopted;
}

uint64_t Ledger::IdleChunks(Slot slot) const {
  const auto found = totals_.find(slot);
  return found == totals_.end() ? 0 : found->second.idle;
}

std::vector<Ledger::Holding> Ledger::HoldingsOf(JobId job) const {
  std::vector<Holding> holdings;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return holdings;
  for (const ChunkId id : found->second.held) {
    const Chunk& chunk = chunks_.at(id);
    if (chunk.owner == job) holdings.push_back({id, chunk.slot, false});
  }
  for (const auto& [id, slot] : found->second.adopted) holdings.push_back({id, slot, true});
  std::sort(holdings.begin(), holdings.end(), [](const Holding& a, const Holding& b) {
    return std::tie(a.slot, a.chunk) < std::tie(b.slot, b.chunk);
  });
  return holdings;
}

}  // namespace tidemark::daemon
