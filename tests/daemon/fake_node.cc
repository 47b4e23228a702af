// The fixed node.

#include "tests/daemon/fake_node.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/policy.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr int64_t kStarted = 1700000000;

DeviceSnapshot MakeDevice(uint32_t index, uint64_t leased, uint64_t pooled) {
  DeviceSnapshot device;
  device.index = index;
  device.uuid = absl::StrCat("GPU-00000000-0000-0000-0000-00000000000", index);
  device.name = "Fake GPU";
  device.total_bytes = 8 * kGiB;
  device.pool_budget_bytes = 7 * kGiB;
  device.leased_bytes = leased;
  device.pooled_bytes = pooled;
  device.foreign_bytes = 512 * kMiB;
  device.foreign_measured = index == 0;
  device.free_bytes = device.total_bytes - leased - pooled - device.foreign_bytes;
  return device;
}

tm_wire_counters_device MakeCounters(uint64_t scale) {
  tm_wire_counters_device c = {};
  c.requested_bytes = scale * 900 * kMiB;
  c.allocated_bytes = scale * 910 * kMiB;
  c.active_bytes = scale * 920 * kMiB;
  c.reserved_bytes = scale * kGiB;
  c.host_resident_bytes = scale * 256 * kMiB;
  c.pinned_bytes = scale * 16 * kMiB;
  c.passed_through_bytes = scale * 8 * kMiB;
  c.host_passed_through_bytes = scale * 4 * kMiB;
  c.peak_requested_bytes = scale * 1700 * kMiB;
  c.peak_active_bytes = scale * 1024 * kMiB;
  c.peak_reserved_bytes = scale * 1280 * kMiB;
  c.free_mapped_bytes = scale * 100 * kMiB;
  c.largest_free_mapped_bytes = scale * 25 * kMiB;
  c.largest_free_stitchable_bytes = scale * 96 * kMiB;
  c.moved_out_bytes_total = scale * 5 * kGiB;
  c.moved_in_bytes_total = scale * 4 * kGiB;
  c.evicted_chunks_total = scale * 2560;
  c.prefetched_chunks_total = scale * 2000;
  c.demand_returned_chunks_total = scale * 48;
  c.host_mapped_accesses_total = scale * 7;
  c.safepoints_total = scale * 120;
  c.safepoint_ns_total = scale * 250000000;
  c.stall_ns_total = scale * 1500000000;
  c.allocations_total = scale * 100000;
  c.frees_total = scale * 99000;
  c.launches_total = scale * 500000;
  c.ooms_total = scale - 1;
  return c;
}

JobSnapshot MakeJob(uint64_t id, const std::string& name, uint64_t scale) {
  JobSnapshot job;
  job.id = id;
  job.name = name;
  job.pid = 4000 + static_cast<uint32_t>(id);
  job.uid = 1000;
  job.attached = absl::FromUnixSeconds(kStarted + 60 * static_cast<int64_t>(id));
  job.policy = name == "chargpt" ? "chargpt" : "default";
  job.daemon_round_trips_total = 30 * id;
  job.reconnects_total = id - 1;
  JobDeviceSnapshot device;
  device.budget_bytes = 3 * kGiB;
  device.leased_bytes = scale * kGiB;
  device.host_budget_bytes = 4 * kGiB;
  device.host_leased_bytes = scale * 256 * kMiB;
  device.counters = MakeCounters(scale);
  job.devices.push_back(device);
  return job;
}

Event MakeEvent(uint64_t id, const std::string& kind, uint64_t job_id,
                const std::string& sentence) {
  return {id, absl::FromUnixSeconds(kStarted + 60 * static_cast<int64_t>(id)), kind, job_id,
          sentence};
}

}  // namespace

FakeNode::FakeNode() {
  snapshot_.hostname = "fakehost";
  snapshot_.started = absl::FromUnixSeconds(kStarted);
  snapshot_.chunk_bytes = 2 * kMiB;
  snapshot_.host_budget_bytes = 32 * kGiB;
  snapshot_.host_used_bytes = 768 * kMiB;
  snapshot_.host_available_bytes = 48 * kGiB;
  snapshot_.leases_total = 1536;
  snapshot_.lease_refusals_total = 3;
  snapshot_.reconnects_total = 1;
  snapshot_.devices = {MakeDevice(0, 3 * kGiB, kGiB), MakeDevice(1, 0, 0)};
  snapshot_.jobs = {MakeJob(1, "chargpt", 1), MakeJob(2, "finetune-7b", 2)};
  UserSnapshot user;
  user.uid = 1000;
  user.jobs = 2;
  user.device_held_bytes = {3 * kGiB, 0};
  user.device_quota_bytes = 4 * kGiB;
  user.host_held_bytes = 768 * kMiB;
  snapshot_.users = {user};
  policy_ = DefaultPolicy();
  PolicyEntry& quota = policy_.entries["uid:1000"];
  quota = DefaultEntry();
  quota.name = "uid:1000";
  quota.device_budget_bytes = 4 * kGiB;
  policy_.generation = 4;
  PolicyEntry& chargpt = policy_.entries["chargpt"];
  chargpt.name = "chargpt";
  chargpt.level = Level::kAggressive;
  chargpt.device_budget_bytes = 3 * kGiB;
  chargpt.guarantee_bytes = kGiB;
  chargpt.priority = 10;
  chargpt.movable_classes = {"activation", "optimizer"};
  events_ = {MakeEvent(1, "job_attached", 1, "Job 1 (chargpt, pid 4001) attached."),
             MakeEvent(2, "job_attached", 2, "Job 2 (finetune-7b, pid 4002) attached."),
             MakeEvent(3, "lease_refused", 2, "Job 2 asked for 64 MiB above its budget of 3 GiB.")};
}

NodeSnapshot FakeNode::Snapshot() {
  absl::MutexLock lock(&mutex_);
  return snapshot_;
}

void FakeNode::SetJobs(std::vector<JobSnapshot> jobs) {
  absl::MutexLock lock(&mutex_);
  snapshot_.jobs = std::move(jobs);
}

absl::Status FakeNode::CheckJob(uint64_t job_id) {
  absl::MutexLock lock(&mutex_);
  for (const JobSnapshot& job : snapshot_.jobs) {
    if (job.id == job_id) return absl::OkStatus();
  }
  return absl::NotFoundError(absl::StrCat("No job ", job_id, " is attached"));
}

absl::StatusOr<std::vector<ChunkRun>> FakeNode::MemoryMap(uint64_t job_id) {
  if (absl::Status status = CheckJob(job_id); !status.ok()) return status;
  return std::vector<ChunkRun>{{0, TM_WIRE_DEVICE, 100, 384, false},
                               {0, TM_WIRE_DEVICE, 600, 128, true},
                               {0, TM_WIRE_HOST, 9000, 128, false}};
}

Policy FakeNode::GetPolicy() {
  absl::MutexLock lock(&mutex_);
  return policy_;
}

absl::StatusOr<Policy> FakeNode::ChangePolicy(const PolicyChange& change) {
  absl::MutexLock lock(&mutex_);
  if (change.replace_all) policy_.entries.clear();
  for (const PolicyEntry& entry : change.set) policy_.entries[entry.name] = entry;
  for (const std::string& name : change.remove) policy_.entries.erase(name);
  ++policy_.generation;
  last_actor_ = change.actor;
  return policy_;
}

absl::StatusOr<std::vector<std::string>> FakeNode::ExplainPolicy(uint64_t job_id) {
  if (absl::Status status = CheckJob(job_id); !status.ok()) return status;
  return std::vector<std::string>{"Entry \"chargpt\" applies, because it has the job's name.",
                                  "Its device budget is 3 GiB, set in the entry."};
}

absl::StatusOr<uint64_t> FakeNode::RequestEvict(uint64_t job_id, uint64_t bytes) {
  if (absl::Status status = CheckJob(job_id); !status.ok()) return status;
  return std::min(bytes, kGiB);
}

absl::StatusOr<uint64_t> FakeNode::RequestPrefetch(uint64_t job_id, uint64_t bytes) {
  if (absl::Status status = CheckJob(job_id); !status.ok()) return status;
  return std::min(bytes, 256 * kMiB);
}

absl::Status FakeNode::SetPinned(uint64_t job_id, bool pinned) {
  if (absl::Status status = CheckJob(job_id); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  pinned_ = pinned;
  return absl::OkStatus();
}

std::vector<Event> FakeNode::EventsAfter(uint64_t after_id) {
  absl::MutexLock lock(&mutex_);
  std::vector<Event> after;
  std::copy_if(events_.begin(), events_.end(), std::back_inserter(after),
               [after_id](const Event& event) { return event.id > after_id; });
  return after;
}

void FakeNode::WaitForEvent(uint64_t after_id, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto newer = [this, after_id]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !events_.empty() && events_.back().id > after_id;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&newer), timeout);
}

void FakeNode::AddEvent(const std::string& kind, uint64_t job_id, const std::string& sentence) {
  absl::MutexLock lock(&mutex_);
  events_.push_back(MakeEvent(events_.back().id + 1, kind, job_id, sentence));
}

std::string FakeNode::last_actor() {
  absl::MutexLock lock(&mutex_);
  return last_actor_;
}

bool FakeNode::pinned() {
  absl::MutexLock lock(&mutex_);
  return pinned_;
}

}  // namespace tidemark::daemon
