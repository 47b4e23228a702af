// Field-by-field translation; the order is that of admin.proto.

#include "daemon/admin_convert.h"

#include <algorithm>

namespace tidemark::daemon {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

void FillDevice(const DeviceSnapshot& device, v1::Device* out) {
  out->set_index(device.index);
  out->set_uuid(device.uuid);
  out->set_name(device.name);
  out->set_total_bytes(device.total_bytes);
  out->set_pool_budget_bytes(device.pool_budget_bytes);
  out->set_leased_bytes(device.leased_bytes);
  out->set_pooled_bytes(device.pooled_bytes);
  out->set_foreign_bytes(device.foreign_bytes);
  out->set_foreign_measured(device.foreign_measured);
  out->set_free_bytes(device.free_bytes);
}

void FillCounters(const tm_wire_counters_device& counters, v1::JobDevice* out) {
  out->set_requested_bytes(counters.requested_bytes);
  out->set_allocated_bytes(counters.allocated_bytes);
  out->set_active_bytes(counters.active_bytes);
  out->set_reserved_bytes(counters.reserved_bytes);
  out->set_host_resident_bytes(counters.host_resident_bytes);
  out->set_pinned_bytes(counters.pinned_bytes);
  out->set_peak_active_bytes(counters.peak_active_bytes);
  out->set_peak_reserved_bytes(counters.peak_reserved_bytes);
  out->set_peak_requested_bytes(counters.peak_requested_bytes);
  out->set_moved_out_bytes_total(counters.moved_out_bytes_total);
  out->set_moved_in_bytes_total(counters.moved_in_bytes_total);
  out->set_evicted_chunks_total(counters.evicted_chunks_total);
  out->set_prefetched_chunks_total(counters.prefetched_chunks_total);
  out->set_demand_returned_chunks_total(counters.demand_returned_chunks_total);
  out->set_host_mapped_accesses_total(counters.host_mapped_accesses_total);
  out->set_safepoints_total(counters.safepoints_total);
  out->set_safepoint_seconds_total(counters.safepoint_ns_total / kNanosecondsPerSecond);
  out->set_stall_seconds_total(counters.stall_ns_total / kNanosecondsPerSecond);
  out->set_allocations_total(counters.allocations_total);
  out->set_frees_total(counters.frees_total);
  out->set_launches_total(counters.launches_total);
  out->set_ooms_total(counters.ooms_total);
  out->set_hash_mismatches_total(counters.hash_mismatches_total);
  out->set_external_fragmentation_ratio(ExternalFragmentation(counters));
  out->set_free_mapped_bytes(counters.free_mapped_bytes);
  out->set_largest_free_mapped_bytes(counters.largest_free_mapped_bytes);
  out->set_largest_free_stitchable_bytes(counters.largest_free_stitchable_bytes);
}

void FillJob(const JobSnapshot& job, v1::Job* out) {
  out->set_id(job.id);
  out->set_name(job.name);
  out->set_pid(job.pid);
  out->set_uid(job.uid);
  out->set_attached_unix_seconds(absl::ToUnixSeconds(job.attached));
  out->set_policy(job.policy);
  out->set_daemon_round_trips_total(job.daemon_round_trips_total);
  out->set_reconnects_total(job.reconnects_total);
  for (const JobDeviceSnapshot& device : job.devices) {
    v1::JobDevice* row = out->add_devices();
    row->set_device(device.device);
    row->set_budget_bytes(device.budget_bytes);
    row->set_leased_bytes(device.leased_bytes);
    row->set_host_budget_bytes(device.host_budget_bytes);
    row->set_host_leased_bytes(device.host_leased_bytes);
    FillCounters(device.counters, row);
  }
}

void FillUser(const UserSnapshot& user, v1::User* out) {
  out->set_uid(user.uid);
  out->set_jobs(user.jobs);
  for (const uint64_t held : user.device_held_bytes) out->add_device_held_bytes(held);
  out->set_device_quota_bytes(user.device_quota_bytes);
  out->set_host_held_bytes(user.host_held_bytes);
  out->set_host_quota_bytes(user.host_quota_bytes);
}

v1::Level ToProto(Level level) {
  switch (level) {
    case Level::kOff:
      return v1::LEVEL_OFF;
    case Level::kNormal:
      return v1::LEVEL_NORMAL;
    case Level::kAggressive:
      return v1::LEVEL_AGGRESSIVE;
  }
  return v1::LEVEL_UNSPECIFIED;
}

}  // namespace

double ExternalFragmentation(const tm_wire_counters_device& counters) {
  if (counters.free_mapped_bytes == 0) return 0;
  const double largest = static_cast<double>(counters.largest_free_mapped_bytes);
  // The job writes both without a lock over its allocator, so the largest may be ahead of the sum.
  return std::max(0.0, 1 - largest / static_cast<double>(counters.free_mapped_bytes));
}

double PeakUtilisation(const tm_wire_counters_device& counters) {
  if (counters.peak_reserved_bytes == 0) return 0;
  return static_cast<double>(counters.peak_active_bytes) /
         static_cast<double>(counters.peak_reserved_bytes);
}

void FillNode(const NodeSnapshot& snapshot, v1::GetNodeResponse* out) {
  out->set_hostname(snapshot.hostname);
  out->set_version(TIDEMARK_VERSION);
  out->set_started_unix_seconds(absl::ToUnixSeconds(snapshot.started));
  out->set_host_budget_bytes(snapshot.host_budget_bytes);
  out->set_host_used_bytes(snapshot.host_used_bytes);
  out->set_host_available_bytes(snapshot.host_available_bytes);
  out->set_chunk_bytes(snapshot.chunk_bytes);
  out->set_leases_total(snapshot.leases_total);
  out->set_lease_refusals_total(snapshot.lease_refusals_total);
  out->set_reconnects_total(snapshot.reconnects_total);
  out->set_bad_messages_total(snapshot.bad_messages_total);
  for (const DeviceSnapshot& device : snapshot.devices) FillDevice(device, out->add_devices());
  for (const JobSnapshot& job : snapshot.jobs) FillJob(job, out->add_jobs());
  for (const UserSnapshot& user : snapshot.users) FillUser(user, out->add_users());
}

void FillMemoryMap(const std::vector<ChunkRun>& runs, v1::GetMemoryMapResponse* out) {
  for (const ChunkRun& run : runs) {
    v1::GetMemoryMapResponse::Run* row = out->add_runs();
    row->set_device(run.device);
    row->set_place(run.place == TM_WIRE_HOST ? "host" : "device");
    row->set_first_chunk_id(run.first_chunk_id);
    row->set_count(run.count);
    row->set_adopted(run.adopted);
  }
}

void FillPolicy(const Policy& policy, v1::GetPolicyResponse* out) {
  out->set_generation(policy.generation);
  for (const auto& [name, entry] : policy.entries) {
    v1::PolicyEntry* row = out->add_entries();
    row->set_name(name);
    row->set_level(ToProto(entry.level));
    row->set_device_budget_bytes(entry.device_budget_bytes);
    row->set_host_budget_bytes(entry.host_budget_bytes);
    row->set_guarantee_bytes(entry.guarantee_bytes);
    row->set_priority(entry.priority);
    row->set_min_size_bytes(entry.min_size_bytes);
    row->set_max_slowdown_permille(entry.max_slowdown_permille);
    for (const std::string& word : entry.movable_classes) row->add_movable_classes(word);
  }
}

void FillEvent(const Event& event, v1::Event* out) {
  out->set_id(event.id);
  out->set_unix_milliseconds(absl::ToUnixMillis(event.time));
  out->set_kind(event.kind);
  out->set_job_id(event.job_id);
  out->set_sentence(event.sentence);
}

}  // namespace tidemark::daemon
