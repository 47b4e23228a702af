// The broker as people see it: snapshots, policy changes, explanations, operator requests.

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/broker.h"
#include "daemon/byte_text.h"
#include "daemon/policy.h"
#include "daemon/policy_text.h"

namespace tidemark::daemon {

DeviceSnapshot Broker::SnapshotDevice(uint32_t device) {
  const ManagedDevice& hardware = hardware_.devices[device];
  const Slot slot{device, TM_WIRE_DEVICE};
  DeviceSnapshot snapshot;
  snapshot.index = device;
  snapshot.uuid = UuidText(hardware.uuid);
  snapshot.name = hardware.name;
  snapshot.total_bytes = hardware.total_bytes;
  snapshot.pool_budget_bytes = DeviceCap(device) * hardware_.chunk_bytes;
  snapshot.leased_bytes = ledger_.LeasedChunks(slot) * hardware_.chunk_bytes;
  snapshot.pooled_bytes = ledger_.IdleChunks(slot) * hardware_.chunk_bytes;
  // Without a measurement, what is known is what the driver refused lately; without a refusal,
  // nothing.
  const auto foreign = foreign_.find(device);
  snapshot.foreign_measured = foreign != foreign_.end();
  const auto ceiling = ceilings_.find(device);
  if (snapshot.foreign_measured) {
    snapshot.foreign_bytes = foreign->second.bytes;
  } else if (ceiling != ceilings_.end() && ceiling->second.until > world_.now()) {
    const uint64_t ours = ceiling->second.chunks * hardware_.chunk_bytes;
    snapshot.foreign_bytes = hardware.total_bytes - std::min(ours, hardware.total_bytes);
  }
  const uint64_t used = snapshot.leased_bytes + snapshot.pooled_bytes;
  const uint64_t rest = hardware.total_bytes - std::min(used, hardware.total_bytes);
  snapshot.foreign_bytes = std::min(snapshot.foreign_bytes, rest);
  snapshot.free_bytes = rest - snapshot.foreign_bytes;
  return snapshot;
}

JobSnapshot Broker::SnapshotJob(JobId id, Job* job) {
  const tm_wire_counters_page& counters = job->counter_page.Read();
  JobSnapshot snapshot;
  snapshot.id = id;
  snapshot.name = job->name;
  snapshot.pid = job->peer.pid;
  snapshot.uid = job->peer.uid;
  snapshot.attached = job->attached;
  snapshot.policy = EntryFor(policy_, job->name).name;
  snapshot.daemon_round_trips_total = counters.daemon_round_trips_total;
  snapshot.reconnects_total = counters.reconnects_total;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    JobDeviceSnapshot part;
    part.device = device;
    part.budget_bytes = job->published.device[device].budget_bytes;
    part.host_budget_bytes = job->published.device[device].host_budget_bytes;
    part.leased_bytes = ledger_.HeldChunks(id, {device, TM_WIRE_DEVICE}) * hardware_.chunk_bytes;
    part.host_leased_bytes = ledger_.HeldChunks(id, {device, TM_WIRE_HOST}) * hardware_.chunk_bytes;
    part.counters = counters.device[device];
    snapshot.devices.push_back(part);
  }
  return snapshot;
}

std::vector<UserSnapshot> Broker::SnapshotUsers() {
  const uint64_t chunk = hardware_.chunk_bytes;
  const auto bytes = [chunk](uint64_t limit) { return limit == kNoQuota ? 0 : limit * chunk; };
  std::map<uid_t, UserSnapshot> users;
  for (const auto& [id, job] : jobs_) {
    UserSnapshot& user = users[job.peer.uid];
    user.uid = job.peer.uid;
    ++user.jobs;
    user.device_quota_bytes = bytes(QuotaLimit(user.uid, TM_WIRE_DEVICE));
    user.host_quota_bytes = bytes(QuotaLimit(user.uid, TM_WIRE_HOST));
    user.host_held_bytes += HostHeldBy(id) * chunk;
    user.device_held_bytes.resize(hardware_.devices.size());
    for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
      user.device_held_bytes[device] += ledger_.HeldChunks(id, {device, TM_WIRE_DEVICE}) * chunk;
    }
  }
  std::vector<UserSnapshot> list;
  list.reserve(users.size());
  for (auto& [uid, user] : users) list.push_back(std::move(user));
  return list;
}

NodeSnapshot Broker::Snapshot() {
  MutexLock lock(&mutex_);
  NodeSnapshot snapshot;
  snapshot.hostname = hostname_;
  snapshot.started = started_;
  snapshot.chunk_bytes = hardware_.chunk_bytes;
  snapshot.host_budget_bytes = HostCap() * hardware_.chunk_bytes;
  snapshot.host_used_bytes = HostHeld() * hardware_.chunk_bytes;
  snapshot.host_available_bytes = host_.available_bytes;
  snapshot.leases_total = leases_total_;
  snapshot.lease_refusals_total = lease_refusals_total_;
  snapshot.reconnects_total = reconnects_total_;
  snapshot.bad_messages_total = bad_messages_total_;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    snapshot.devices.push_back(SnapshotDevice(device));
  }
  for (auto& [id, job] : jobs_) snapshot.jobs.push_back(SnapshotJob(id, &job));
  snapshot.users = SnapshotUsers();
  return snapshot;
}

absl::StatusOr<Broker::Job*> Broker::Named(uint64_t job_id) {
  const auto found = jobs_.find(job_id);
  if (found != jobs_.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat("no job ", job_id, " is attached"));
}

absl::StatusOr<std::vector<ChunkRun>> Broker::MemoryMap(uint64_t job_id) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Job*> job = Named(job_id);
  if (!job.ok()) return job.status();
  std::vector<ChunkRun> runs;
  for (const Ledger::Holding& holding : ledger_.HoldingsOf(job_id)) {
    if (!runs.empty()) {
      ChunkRun& last = runs.back();
      if (last.device == holding.slot.device && last.place == holding.slot.place &&
          last.adopted == holding.adopted && last.first_chunk_id + last.count == holding.chunk) {
        ++last.count;
        continue;
      }
    }
    runs.push_back({holding.slot.device, holding.slot.place, holding.chunk, 1, holding.adopted});
  }
  return runs;
}

Policy Broker::GetPolicy() {
  MutexLock lock(&mutex_);
  return policy_;
}

absl::StatusOr<Policy> Broker::ChangePolicy(const PolicyChange& change) {
  MutexLock disk(&disk_mutex_);  // one change at a time, and no state lock over the disk
  const Policy before = GetPolicy();
  absl::StatusOr<Policy> next = Changed(before, change);
  if (!next.ok()) return next.status();
  absl::Status saved = state_->SavePolicy(*next, change.actor, world_.now());
  if (!saved.ok()) {
    return absl::Status(saved.code(),
                        absl::StrCat("the policy was not changed: ", saved.message()));
  }
  {
    MutexLock lock(&mutex_);
    policy_ = *next;
    Publish();
  }
  AddEvent("policy_changed", kNobody,
           absl::StrCat(change.actor, " changed the policy to generation ", next->generation, ":",
                        DescribeChange(before, *next)));
  return next;
}

std::string Broker::ExplainDevice(JobId id, const Job& job, uint32_t device) {
  const auto bytes = [&](uint64_t chunks) { return ReadableBytes(chunks * hardware_.chunk_bytes); };
  const Claim claim = DeviceClaim(id, job, device);
  const uint64_t cap = DeviceCap(device);
  const uint64_t budget = DeviceBudget(id, device);
  const uint64_t all = ledger_.LeasedChunks({device, TM_WIRE_DEVICE});
  std::string text =
      absl::StrCat("Device ", device, ": it holds ", bytes(claim.held), " and may hold ",
                   bytes(budget), " of the ", bytes(cap),
                   " that can be handed out; other jobs hold ", bytes(all - claim.held), ". ");
  if (budget >= claim.limit) {
    const bool whole = claim.limit == cap;
    absl::StrAppend(&text, "That is ", whole ? "all there is" : "its limit",
                    whole                         ? ""
                    : job.asked_device_bytes != 0 ? " (policy or its own request)"
                                                  : "",
                    ".");
  } else {
    absl::StrAppend(&text, "Its limit is ", bytes(claim.limit),
                    "; the rest is held or wanted by jobs with as good a claim.");
  }
  for (const auto& [other, rival] : jobs_) {
    const Claim wish = DeviceClaim(other, rival, device);
    if (wish.wanted <= wish.held) continue;
    absl::StrAppend(&text, " Job ", other, " lately asked for ", bytes(wish.wanted - wish.held),
                    " more.");
  }
  if (budget < claim.held) {
    absl::StrAppend(&text, " It is asked to give ", bytes(claim.held - budget), " back.");
  }
  return text;
}

std::string Broker::ExplainQuota(const PolicyEntry& quota, uid_t uid) {
  const auto part = [&](const char* where, Slot slot) {
    const Quota of_user = QuotasIn(slot).at(uid);
    const uint64_t chunk = hardware_.chunk_bytes;
    return of_user.limit == kNoQuota
               ? ""
               : absl::StrCat(" ", ReadableBytes(of_user.held * chunk), " of ",
                              ReadableBytes(of_user.limit * chunk), " ", where, ";");
  };
  std::string text = absl::StrCat("User ", uid, "'s quota, entry \"", quota.name,
                                  "\", bounds all jobs of the user together:");
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    absl::StrAppend(&text,
                    part(absl::StrCat("on device ", device).c_str(), {device, TM_WIRE_DEVICE}));
  }
  absl::StrAppend(&text, part("of pinned host memory", {0, TM_WIRE_HOST}));
  text.back() = '.';
  return text;
}

absl::StatusOr<std::vector<std::string>> Broker::ExplainPolicy(uint64_t job_id) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Job*> named = Named(job_id);
  if (!named.ok()) return named.status();
  const Job& job = **named;
  const PolicyEntry& entry = EntryFor(policy_, job.name);
  std::vector<std::string> sentences;
  sentences.push_back(absl::StrCat(
      "Job ", job_id, " is named ", job.name, "; the policy entry \"", entry.name, "\" applies",
      entry.name == job.name ? "." : ", because there is none with its name."));
  sentences.push_back(absl::StrCat("Level ", LevelName(entry.level), ", priority ", entry.priority,
                                   ", guarantee ", ReadableBytes(entry.guarantee_bytes),
                                   ", buffers under ", ReadableBytes(entry.min_size_bytes),
                                   " leave last."));
  if (entry.movable_classes.size() < std::size(kClassNames)) {
    sentences.push_back(
        absl::StrCat("Buffers leave last, too, when they are of another class than ",
                     entry.movable_classes.empty() ? "(none is named)"
                                                   : absl::StrJoin(entry.movable_classes, ", "),
                     "; without hints from the job every buffer is of class unknown."));
  }
  if (entry.max_slowdown_permille != 0) {
    sentences.push_back(absl::StrCat(
        "A maximum slow-down of ", entry.max_slowdown_permille / 10, ".",
        entry.max_slowdown_permille % 10,
        " % is kept but not acted on yet: nothing leaves unless device memory is short."));
  }
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    sentences.push_back(ExplainDevice(job_id, job, device));
  }
  const uint64_t chunk = hardware_.chunk_bytes;
  sentences.push_back(absl::StrCat("Pinned host memory: it holds ",
                                   ReadableBytes(HostHeldBy(job_id) * chunk), " and may hold ",
                                   ReadableBytes(HostBudget(job_id) * chunk), " of the node's ",
                                   ReadableBytes(HostCap() * chunk), "."));
  if (const PolicyEntry* quota = QuotaEntry(policy_, job.peer.uid)) {
    sentences.push_back(ExplainQuota(*quota, job.peer.uid));
  }
  if (job.pinned) sentences.push_back("An operator pinned it: it is never asked to shrink.");
  if (entry.level == Level::kOff) {
    sentences.push_back("Its level is off: it is never asked to shrink.");
  }
  if (entry.level == Level::kAggressive) {
    sentences.push_back(
        "Level aggressive acts as normal does so far: buffers leave when device "
        "memory is short, never ahead of that.");
  }
  return sentences;
}

absl::StatusOr<uint64_t> Broker::RequestEvict(uint64_t job_id, uint64_t bytes) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Job*> job = Named(job_id);
  if (!job.ok()) return job.status();
  if ((*job)->pinned) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job_id, " is pinned; unpin it before evicting"));
  }
  uint64_t held = 0;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    held += ledger_.HeldChunks(job_id, {device, TM_WIRE_DEVICE}) * hardware_.chunk_bytes;
  }
  const uint64_t accepted = std::min(bytes, held);
  tm_wire_policy_page& page = (*job)->published;
  page.evict_request_bytes += accepted;
  (*job)->policy_page.Write(page);
  AddEvent("evict_requested", job_id,
           absl::StrCat("job ", job_id, " is asked to evict ", ReadableBytes(accepted)));
  return accepted;
}

absl::StatusOr<uint64_t> Broker::RequestPrefetch(uint64_t job_id, uint64_t bytes) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Job*> job = Named(job_id);
  if (!job.ok()) return job.status();
  const uint64_t accepted = std::min(bytes, HostHeldBy(job_id) * hardware_.chunk_bytes);
  tm_wire_policy_page& page = (*job)->published;
  page.prefetch_request_bytes += accepted;
  (*job)->policy_page.Write(page);
  AddEvent("prefetch_requested", job_id,
           absl::StrCat("job ", job_id, " is asked to bring back ", ReadableBytes(accepted)));
  return accepted;
}

absl::Status Broker::SetPinned(uint64_t job_id, bool pinned) {
  MutexLock lock(&mutex_);
  absl::StatusOr<Job*> job = Named(job_id);
  if (!job.ok()) return job.status();
  (*job)->pinned = pinned;
  Publish();
  AddEvent(
      pinned ? "job_pinned" : "job_unpinned", job_id,
      absl::StrCat("job ", job_id, pinned ? " keeps what it holds" : " may be asked to shrink"));
  return absl::OkStatus();
}

std::vector<Event> Broker::EventsAfter(uint64_t after_id) { return events_.After(after_id); }

void Broker::WaitForEvent(uint64_t after_id, absl::Duration timeout) {
  events_.WaitAfter(after_id, timeout);
}

std::string Broker::DriverPath() { return hardware_.driver_path; }

int Broker::DriverVersion() {
  int version = 0;
  hardware_.driver->cuDriverGetVersion(&version);
  return version;
}

}  // namespace tidemark::daemon
