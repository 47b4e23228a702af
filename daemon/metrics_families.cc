// The tables of families, by what they are labelled with, and one loop for each.

#include "daemon/metrics_families.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/admin_convert.h"

namespace tidemark::daemon {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

constexpr MetricType kGauge = MetricType::Gauge;
constexpr MetricType kCounter = MetricType::Counter;

// One time series of a family: `label_value` distinguishes it when the family has `label`.
template <typename Row>
struct Series {
  const char* label_value;
  double (*get)(const Row&);
};

template <typename Row>
struct FamilySpec {
  const char* name;
  MetricType type;
  const char* help;
  const char* label;  // beside those of the table; "" for none
  std::vector<Series<Row>> series;
};

double Seconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e9; }

using JobDevice = JobDeviceSnapshot;
#define TM_COUNTER_FIELD(field) \
  [](const JobDevice& row) { return static_cast<double>(row.counters.field); }
#define TM_FIELD(type, field) [](const type& row) { return static_cast<double>(row.field); }

// Labels: none.
// NOLINTNEXTLINE(readability-function-size): a flat table.
const std::vector<FamilySpec<NodeSnapshot>>& NodeFamilies() {
  static const auto* families = new std::vector<FamilySpec<NodeSnapshot>>{
      {"tidemark_up",
       kGauge,
       "1 while tidemarkd serves.",
       "",
       {{"", [](const NodeSnapshot&) { return 1.0; }}}},
      {"tidemark_start_timestamp_seconds",
       kGauge,
       "When tidemarkd started, in Unix time.",
       "",
       {{"",
         [](const NodeSnapshot& row) {
           return absl::ToDoubleSeconds(row.started - absl::UnixEpoch());
         }}}},
      {"tidemark_jobs",
       kGauge,
       "Jobs attached now.",
       "",
       {{"", [](const NodeSnapshot& row) { return static_cast<double>(row.jobs.size()); }}}},
      {"tidemark_chunk_bytes",
       kGauge,
       "Size of one chunk.",
       "",
       {{"", TM_FIELD(NodeSnapshot, chunk_bytes)}}},
      {"tidemark_leases_total",
       kCounter,
       "Chunks leased to jobs.",
       "",
       {{"", TM_FIELD(NodeSnapshot, leases_total)}}},
      {"tidemark_lease_refusals_total",
       kCounter,
       "Lease requests answered with less than was asked.",
       "",
       {{"", TM_FIELD(NodeSnapshot, lease_refusals_total)}}},
      {"tidemark_reconnects_total",
       kCounter,
       "Jobs that came back after a restart of tidemarkd.",
       "",
       {{"", TM_FIELD(NodeSnapshot, reconnects_total)}}},
      {"tidemark_bad_messages_total",
       kCounter,
       "Messages from jobs that were dropped as malformed.",
       "",
       {{"", TM_FIELD(NodeSnapshot, bad_messages_total)}}},
      {"tidemark_host_budget_bytes",
       kGauge,
       "Pinned host memory that tidemarkd may hand out.",
       "",
       {{"", TM_FIELD(NodeSnapshot, host_budget_bytes)}}},
      {"tidemark_host_used_bytes",
       kGauge,
       "Pinned host memory that jobs hold.",
       "",
       {{"", TM_FIELD(NodeSnapshot, host_used_bytes)}}},
      {"tidemark_host_available_bytes",
       kGauge,
       "Host memory that is available without swapping, bounded by the cgroup.",
       "",
       {{"", TM_FIELD(NodeSnapshot, host_available_bytes)}}},
  };
  return *families;
}

// Labels: gpu.
const std::vector<FamilySpec<DeviceSnapshot>>& DeviceFamilies() {
  static const auto* families = new std::vector<FamilySpec<DeviceSnapshot>>{
      {"tidemark_device_capacity_bytes",
       kGauge,
       "Memory of the device.",
       "",
       {{"", TM_FIELD(DeviceSnapshot, total_bytes)}}},
      {"tidemark_device_pool_budget_bytes",
       kGauge,
       "Device memory that tidemarkd may hand out.",
       "",
       {{"", TM_FIELD(DeviceSnapshot, pool_budget_bytes)}}},
      {"tidemark_device_memory_bytes",
       kGauge,
       "Device memory by holder; the sum over state is the capacity.",
       "state",
       {{"leased", TM_FIELD(DeviceSnapshot, leased_bytes)},
        {"pooled", TM_FIELD(DeviceSnapshot, pooled_bytes)},
        {"foreign", TM_FIELD(DeviceSnapshot, foreign_bytes)},
        {"free", TM_FIELD(DeviceSnapshot, free_bytes)}}},
  };
  return *families;
}

// Labels: job.
const std::vector<FamilySpec<JobSnapshot>>& JobFamilies() {
  static const auto* families = new std::vector<FamilySpec<JobSnapshot>>{
      {"tidemark_job_attached_timestamp_seconds",
       kGauge,
       "When the job attached, in Unix time.",
       "",
       {{"",
         [](const JobSnapshot& row) {
           return absl::ToDoubleSeconds(row.attached - absl::UnixEpoch());
         }}}},
      {"tidemark_job_daemon_round_trips_total",
       kCounter,
       "Requests of the job to tidemarkd.",
       "",
       {{"", TM_FIELD(JobSnapshot, daemon_round_trips_total)}}},
      {"tidemark_job_reconnects_total",
       kCounter,
       "Times the job attached anew after losing tidemarkd.",
       "",
       {{"", TM_FIELD(JobSnapshot, reconnects_total)}}},
  };
  return *families;
}

// Labels: gpu, job. Gauges of bytes that one device or its host memory holds for one job.
// NOLINTNEXTLINE(readability-function-size): a flat table.
const std::vector<FamilySpec<JobDevice>>& JobMemoryFamilies() {
  static const auto* families = new std::vector<FamilySpec<JobDevice>>{
      {"tidemark_job_budget_bytes",
       kGauge,
       "Device memory that policy lets the job hold.",
       "",
       {{"", TM_FIELD(JobDevice, budget_bytes)}}},
      {"tidemark_job_leased_bytes",
       kGauge,
       "Device memory that the job leases.",
       "",
       {{"", TM_FIELD(JobDevice, leased_bytes)}}},
      {"tidemark_job_host_budget_bytes",
       kGauge,
       "Pinned host memory that policy lets the job hold.",
       "",
       {{"", TM_FIELD(JobDevice, host_budget_bytes)}}},
      {"tidemark_job_host_leased_bytes",
       kGauge,
       "Pinned host memory that the job leases.",
       "",
       {{"", TM_FIELD(JobDevice, host_leased_bytes)}}},
      {"tidemark_job_requested_bytes",
       kGauge,
       "What the live allocations asked for.",
       "",
       {{"", TM_COUNTER_FIELD(requested_bytes)}}},
      {"tidemark_job_allocated_bytes",
       kGauge,
       "Live allocations after rounding.",
       "",
       {{"", TM_COUNTER_FIELD(allocated_bytes)}}},
      {"tidemark_job_active_bytes",
       kGauge,
       "Allocated, and freed but still waiting for the GPU.",
       "",
       {{"", TM_COUNTER_FIELD(active_bytes)}}},
      {"tidemark_job_reserved_bytes",
       kGauge,
       "Device memory in use or kept in reserve, as the job counts it.",
       "",
       {{"", TM_COUNTER_FIELD(reserved_bytes)}}},
      {"tidemark_job_host_resident_bytes",
       kGauge,
       "Live data that is in host memory now.",
       "",
       {{"", TM_COUNTER_FIELD(host_resident_bytes)}}},
      {"tidemark_job_pinned_bytes",
       kGauge,
       "Memory that may not move: exported, registered or in a graph.",
       "",
       {{"", TM_COUNTER_FIELD(pinned_bytes)}}},
      {"tidemark_job_passed_through_bytes",
       kGauge,
       "Device memory that the driver itself serves the job: arrays, pools, graphs.",
       "",
       {{"", TM_COUNTER_FIELD(passed_through_bytes)}}},
      {"tidemark_job_host_passed_through_bytes",
       kGauge,
       "Pinned host memory that the job allocated itself.",
       "",
       {{"", TM_COUNTER_FIELD(host_passed_through_bytes)}}},
      {"tidemark_job_peak_requested_bytes",
       kGauge,
       "Largest requested bytes since the job attached.",
       "",
       {{"", TM_COUNTER_FIELD(peak_requested_bytes)}}},
      {"tidemark_job_peak_active_bytes",
       kGauge,
       "Largest active bytes since the job attached.",
       "",
       {{"", TM_COUNTER_FIELD(peak_active_bytes)}}},
      {"tidemark_job_peak_reserved_bytes",
       kGauge,
       "Largest reserved bytes since the job attached.",
       "",
       {{"", TM_COUNTER_FIELD(peak_reserved_bytes)}}},
      {"tidemark_job_peak_utilisation_ratio",
       kGauge,
       "Peak active bytes / peak reserved bytes.",
       "",
       {{"", [](const JobDevice& row) { return PeakUtilisation(row.counters); }}}},
      {"tidemark_job_free_mapped_bytes",
       kGauge,
       "Holes in the mapped chunks.",
       "",
       {{"", TM_COUNTER_FIELD(free_mapped_bytes)}}},
      {"tidemark_job_largest_free_mapped_bytes",
       kGauge,
       "Largest request that is served without a call to the driver.",
       "",
       {{"", TM_COUNTER_FIELD(largest_free_mapped_bytes)}}},
      {"tidemark_job_largest_free_stitchable_bytes",
       kGauge,
       "Largest request that is served by mapping free chunks side by side.",
       "",
       {{"", TM_COUNTER_FIELD(largest_free_stitchable_bytes)}}},
      {"tidemark_job_external_fragmentation_ratio",
       kGauge,
       "1 - largest free mapped bytes / free mapped bytes.",
       "",
       {{"", [](const JobDevice& row) { return ExternalFragmentation(row.counters); }}}},
  };
  return *families;
}

// Labels: gpu, job. What happened since the job attached.
// NOLINTNEXTLINE(readability-function-size): a flat table.
const std::vector<FamilySpec<JobDevice>>& JobActivityFamilies() {
  static const auto* families = new std::vector<FamilySpec<JobDevice>>{
      {"tidemark_job_moved_bytes_total",
       kCounter,
       "Bytes moved between device and host.",
       "direction",
       {{"d2h", TM_COUNTER_FIELD(moved_out_bytes_total)},
        {"h2d", TM_COUNTER_FIELD(moved_in_bytes_total)}}},
      {"tidemark_job_stall_seconds_total",
       kCounter,
       "Host time the job waited for memory to move.",
       "",
       {{"", [](const JobDevice& row) { return Seconds(row.counters.stall_ns_total); }}}},
      {"tidemark_job_safepoints_total",
       kCounter,
       "Pauses in which memory was remapped.",
       "",
       {{"", TM_COUNTER_FIELD(safepoints_total)}}},
      {"tidemark_job_safepoint_seconds_total",
       kCounter,
       "Time spent in safepoints.",
       "",
       {{"", [](const JobDevice& row) { return Seconds(row.counters.safepoint_ns_total); }}}},
      {"tidemark_job_evicted_chunks_total",
       kCounter,
       "Chunks moved out to the host.",
       "",
       {{"", TM_COUNTER_FIELD(evicted_chunks_total)}}},
      {"tidemark_job_prefetched_chunks_total",
       kCounter,
       "Chunks brought back before they were used.",
       "",
       {{"", TM_COUNTER_FIELD(prefetched_chunks_total)}}},
      {"tidemark_job_demand_returned_chunks_total",
       kCounter,
       "Chunks brought back because they were used.",
       "",
       {{"", TM_COUNTER_FIELD(demand_returned_chunks_total)}}},
      {"tidemark_job_host_mapped_accesses_total",
       kCounter,
       "Launches that used host-resident chunks in place, at the speed of the link.",
       "",
       {{"", TM_COUNTER_FIELD(host_mapped_accesses_total)}}},
      {"tidemark_job_allocations_total",
       kCounter,
       "Allocations served.",
       "",
       {{"", TM_COUNTER_FIELD(allocations_total)}}},
      {"tidemark_job_frees_total",
       kCounter,
       "Frees served.",
       "",
       {{"", TM_COUNTER_FIELD(frees_total)}}},
      {"tidemark_job_launches_total",
       kCounter,
       "Launches, copies and memsets that passed the gate.",
       "",
       {{"", TM_COUNTER_FIELD(launches_total)}}},
      {"tidemark_job_ooms_total",
       kCounter,
       "Out-of-memory results given to the job.",
       "",
       {{"", TM_COUNTER_FIELD(ooms_total)}}},
      {"tidemark_job_hash_mismatches_total",
       kCounter,
       "Buffers found changed while they counted as cold, and therefore not moved.",
       "",
       {{"", TM_COUNTER_FIELD(hash_mismatches_total)}}},
  };
  return *families;
}

#undef TM_COUNTER_FIELD
#undef TM_FIELD

using Labels = std::vector<ClientMetric::Label>;

template <typename Row>
MetricFamily Open(const FamilySpec<Row>& spec) {
  return MetricFamily{spec.name, spec.help, spec.type, {}};
}

template <typename Row>
void Append(const FamilySpec<Row>& spec, const Row& row, const Labels& labels,
            MetricFamily* family) {
  for (const Series<Row>& series : spec.series) {
    ClientMetric metric;
    metric.label = labels;
    if (spec.label[0] != '\0') metric.label.push_back({spec.label, series.label_value});
    if (spec.type == kCounter) {
      metric.counter.value = series.get(row);
    } else {
      metric.gauge.value = series.get(row);
    }
    family->metric.push_back(std::move(metric));
  }
}

std::string GpuLabel(const NodeSnapshot& snapshot, uint32_t index) {
  for (const DeviceSnapshot& device : snapshot.devices) {
    if (device.index == index) return device.uuid;
  }
  return absl::StrCat("unknown-", index);
}

void CollectJobDevices(const std::vector<FamilySpec<JobDevice>>& specs,
                       const NodeSnapshot& snapshot, const JobLabels& labels,
                       std::vector<MetricFamily>* out) {
  for (const FamilySpec<JobDevice>& spec : specs) {
    MetricFamily family = Open(spec);
    for (const JobSnapshot& job : snapshot.jobs) {
      for (const JobDevice& row : job.devices) {
        const Labels keys = {{"gpu", GpuLabel(snapshot, row.device)}, {"job", labels.Of(job.id)}};
        Append(spec, row, keys, &family);
      }
    }
    out->push_back(std::move(family));
  }
}

MetricFamily BuildInfo(const BuildFacts& facts) {
  ClientMetric metric;
  metric.label = {{"version", TIDEMARK_VERSION},
                  {"wire_version", absl::StrCat(TM_WIRE_VERSION)},
                  {"driver_version", absl::StrCat(facts.driver_version)}};
  metric.gauge.value = 1;
  return MetricFamily{
      "tidemark_build_info", "Facts about this tidemarkd; always 1.", kGauge, {metric}};
}

// A name comes from the job and goes into every scrape: a byte that is not UTF-8 would make
// Prometheus drop all of it.
std::string CleanName(const std::string& name) {
  std::string clean = name.empty() ? "unnamed" : name;
  for (char& c : clean) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '_';
  }
  return clean;
}

}  // namespace

void JobLabels::Update(const std::vector<JobSnapshot>& jobs) {
  std::map<uint64_t, std::string> names;
  for (const JobSnapshot& job : jobs) names[job.id] = CleanName(job.name);

  std::map<uint64_t, std::string> kept;
  std::set<std::string> taken;
  for (const auto& [id, label] : labels_) {
    if (names.count(id) != 0 && taken.insert(label).second) kept[id] = label;
  }
  for (const auto& [id, name] : names) {
    if (kept.count(id) != 0) continue;
    std::string label = name;
    while (!taken.insert(label).second) label = absl::StrCat(label, "-", id);
    kept[id] = label;
  }
  labels_ = std::move(kept);
}

std::vector<MetricFamily> CollectFamilies(const NodeSnapshot& snapshot, const JobLabels& labels,
                                          const BuildFacts& facts) {
  std::vector<MetricFamily> families = {BuildInfo(facts)};
  for (const auto& spec : NodeFamilies()) {
    families.push_back(Open(spec));
    Append(spec, snapshot, {}, &families.back());
  }
  for (const auto& spec : DeviceFamilies()) {
    families.push_back(Open(spec));
    for (const DeviceSnapshot& device : snapshot.devices) {
      Append(spec, device, {{"gpu", device.uuid}}, &families.back());
    }
  }
  for (const auto& spec : JobFamilies()) {
    families.push_back(Open(spec));
    for (const JobSnapshot& job : snapshot.jobs) {
      Append(spec, job, {{"job", labels.Of(job.id)}}, &families.back());
    }
  }
  CollectJobDevices(JobMemoryFamilies(), snapshot, labels, &families);
  CollectJobDevices(JobActivityFamilies(), snapshot, labels, &families);
  return families;
}

}  // namespace tidemark::daemon
