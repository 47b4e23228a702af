// The broker's arithmetic: what each device and the host can give, what each job may hold of it,
// and the publication of both in the jobs' policy pages.

#include <algorithm>
#include <cstring>

#include "daemon/broker.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMostReserveBytes = uint64_t{1} << 30;

uint64_t SmallestSet(std::initializer_list<uint64_t> limits, uint64_t otherwise) {
  uint64_t smallest = otherwise;
  for (const uint64_t limit : limits) {
    if (limit != 0) smallest = std::min(smallest, limit);
  }
  return smallest;
}

// Bits of tm_wire_class, which has the order of kClassNames.
uint64_t ClassBits(const std::vector<std::string>& names) {
  uint64_t bits = 0;
  for (size_t i = 0; i < std::size(kClassNames); ++i) {
    if (std::find(names.begin(), names.end(), kClassNames[i]) != names.end()) bits |= 1u << i;
  }
  return bits;
}
static_assert(std::size(kClassNames) == TM_WIRE_CLASS_UNKNOWN + 1);

uint32_t WireLevel(Level level) {
  switch (level) {
    case Level::kOff:
      return TM_WIRE_LEVEL_OFF;
    case Level::kNormal:
      return TM_WIRE_LEVEL_NORMAL;
    case Level::kAggressive:
      return TM_WIRE_LEVEL_AGGRESSIVE;
  }
  return TM_WIRE_LEVEL_NORMAL;
}

}  // namespace

uint64_t Broker::ReserveBytes(uint32_t device) const {
  const uint64_t total = hardware_.devices[device].total_bytes;
  return std::min(options_.device_reserve_bytes.value_or(std::min(total / 32, kMostReserveBytes)),
                  total);
}

// Measured between requests, on the thread that creates chunks: ours are those of the ledger.
void Broker::NoteUsed(uint32_t device, std::optional<uint64_t> used_bytes) {
  foreign_.erase(device);
  if (!used_bytes.has_value()) return;
  const Slot slot{device, TM_WIRE_DEVICE};
  const uint64_t ours =
      (ledger_.LeasedChunks(slot) + ledger_.IdleChunks(slot)) * hardware_.chunk_bytes;
  Foreign& foreign = foreign_[device];
  foreign.bytes = *used_bytes > ours ? *used_bytes - ours : 0;
  foreign.uncharged_bytes = foreign.bytes;
  for (auto& [id, job] : jobs_) {
    const uint64_t charged = job.counter_page.Read().device[device].passed_through_bytes;
    foreign.uncharged_bytes -= std::min(charged, foreign.uncharged_bytes);
  }
}

uint64_t Broker::DeviceCap(uint32_t device) const {
  const uint64_t total = hardware_.devices[device].total_bytes;
  const auto foreign = foreign_.find(device);
  const uint64_t others = foreign == foreign_.end() ? 0 : foreign->second.uncharged_bytes;
  const uint64_t kept = std::min(std::max(ReserveBytes(device), others), total);
  const uint64_t cap = (total - kept) / hardware_.chunk_bytes;
  const auto ceiling = ceilings_.find(device);
  if (ceiling == ceilings_.end() || ceiling->second.until <= world_.now()) return cap;
  return std::min(cap, ceiling->second.chunks);
}

uint64_t Broker::HostHeld() const {
  uint64_t held = 0;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    held += ledger_.LeasedChunks({device, TM_WIRE_HOST});
  }
  return held;
}

uint64_t Broker::HostHeldBy(JobId job) const {
  uint64_t held = 0;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    held += ledger_.HeldChunks(job, {device, TM_WIRE_HOST});
  }
  return held;
}

uint64_t Broker::HostCap() const {
  uint64_t ours = HostHeld();
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    ours += ledger_.IdleChunks({device, TM_WIRE_HOST});
  }
  const uint64_t floor = HostFloorBytes(host_);
  const uint64_t spare = host_.available_bytes > floor ? host_.available_bytes - floor : 0;
  return std::min(host_budget_bytes_ / hardware_.chunk_bytes, ours + spare / hardware_.chunk_bytes);
}

uint64_t Broker::QuotaLimit(uid_t uid, tm_wire_place place) const {
  const PolicyEntry* entry = QuotaEntry(policy_, uid);
  if (entry == nullptr) return kNoQuota;
  return QuotaChunks(place == TM_WIRE_HOST ? entry->host_budget_bytes : entry->device_budget_bytes,
                     hardware_.chunk_bytes);
}

Quotas Broker::QuotasIn(Slot slot) const {
  Quotas quotas;
  for (const auto& [id, job] : jobs_) {
    Quota& quota = quotas[job.peer.uid];
    quota.limit = QuotaLimit(job.peer.uid, slot.place);
    quota.held += slot.place == TM_WIRE_HOST ? HostHeldBy(id) : ledger_.HeldChunks(id, slot);
  }
  return quotas;
}

uint64_t Broker::DeviceLimit(const Job& job, uint32_t device) const {
  const PolicyEntry& entry = EntryFor(policy_, job.name);
  const uint64_t cap = DeviceCap(device);
  const uint64_t bytes =
      SmallestSet({entry.device_budget_bytes, job.asked_device_bytes}, cap * hardware_.chunk_bytes);
  return std::min({cap, std::max<uint64_t>(bytes / hardware_.chunk_bytes, 1),
                   QuotaLimit(job.peer.uid, TM_WIRE_DEVICE)});
}

uint64_t Broker::HostLimit(const Job& job) const {
  const PolicyEntry& entry = EntryFor(policy_, job.name);
  const uint64_t cap = HostCap();
  const uint64_t bytes =
      SmallestSet({entry.host_budget_bytes, job.asked_host_bytes}, cap * hardware_.chunk_bytes);
  return std::min({cap, bytes / hardware_.chunk_bytes, QuotaLimit(job.peer.uid, TM_WIRE_HOST)});
}

Claim Broker::DeviceClaim(JobId id, const Job& job, uint32_t device) const {
  const PolicyEntry& entry = EntryFor(policy_, job.name);
  Claim claim;
  claim.held = ledger_.HeldChunks(id, {device, TM_WIRE_DEVICE});
  claim.wanted = claim.held;
  const auto shortage = job.shortages.find(device);
  if (shortage != job.shortages.end() && shortage->second.until > world_.now()) {
    claim.wanted = std::max(claim.wanted, shortage->second.wanted_chunks);
  }
  claim.limit = DeviceLimit(job, device);
  claim.guarantee = entry.guarantee_bytes / hardware_.chunk_bytes;
  claim.priority = entry.priority;
  // A job whose level is off has no way to give memory up short of freeing it.
  claim.movable = !job.pinned && entry.level != Level::kOff;
  return claim;
}

Claim Broker::HostClaim(JobId id, const Job& job) const {
  Claim claim;
  claim.held = claim.wanted = HostHeldBy(id);
  claim.limit = HostLimit(job);
  claim.priority = EntryFor(policy_, job.name).priority;
  claim.movable = false;  // what was moved out of a device has nowhere further to go
  return claim;
}

// The arbiter divides the place between all jobs, and a user's quota between the user's jobs; the
// smaller part counts.
uint64_t Broker::Budget(JobId id, Slot slot) const {
  const bool host = slot.place == TM_WIRE_HOST;
  const uid_t uid = jobs_.at(id).peer.uid;
  const Quotas quotas = QuotasIn(slot);
  std::vector<Claim> all;
  std::vector<Claim> same_user;
  size_t index = 0;
  size_t index_of_user = 0;
  for (const auto& [other, job] : jobs_) {
    Claim claim = host ? HostClaim(other, job) : DeviceClaim(other, job, slot.device);
    if (other == id) {
      index = all.size();
      index_of_user = same_user.size();
    }
    if (job.peer.uid == uid) same_user.push_back(claim);
    // Nobody shrinks for what another user's quota forbids.
    const uint64_t room = quotas.at(job.peer.uid).room();
    if (other != id && room < claim.limit) claim.limit = std::min(claim.limit, claim.held + room);
    all.push_back(claim);
  }
  const uint64_t budget = Entitlement(host ? HostCap() : DeviceCap(slot.device), all, index);
  const uint64_t limit = quotas.at(uid).limit;
  if (limit == kNoQuota) return budget;
  return std::min(budget, Entitlement(limit, same_user, index_of_user));
}

uint64_t Broker::DeviceBudget(JobId id, uint32_t device) const {
  return Budget(id, {device, TM_WIRE_DEVICE});
}

uint64_t Broker::HostBudget(JobId id) const { return Budget(id, {0, TM_WIRE_HOST}); }

void Broker::PublishTo(JobId id, Job* job) {
  const PolicyEntry& entry = EntryFor(policy_, job->name);
  tm_wire_policy_page page = job->published;
  page.level = WireLevel(entry.level);
  page.max_slowdown_permille = entry.max_slowdown_permille;
  page.min_size_bytes = entry.min_size_bytes;
  page.generation = policy_.generation;
  page.movable_classes = ClassBits(entry.movable_classes);
  const uint64_t host_held = HostHeldBy(id);
  const uint64_t host_budget = HostBudget(id);
  const uint64_t host_more = host_budget > host_held ? host_budget - host_held : 0;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    page.device[device].budget_bytes = DeviceBudget(id, device) * hardware_.chunk_bytes;
    page.device[device].host_budget_bytes =
        (ledger_.HeldChunks(id, {device, TM_WIRE_HOST}) + host_more) * hardware_.chunk_bytes;
  }
  if (std::memcmp(&page, &job->published, sizeof(page)) == 0) return;
  job->published = page;
  job->policy_page.Write(page);
}

void Broker::Publish() {
  for (auto& [id, job] : jobs_) PublishTo(id, &job);
}

void Broker::RefreshHost() { host_ = world_.host_memory(); }

}  // namespace tidemark::daemon
