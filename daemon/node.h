// The daemon's state as its servers see it: one interface between what decides (ledger, pool,
// policy, arbiter, sessions) and what answers people (gRPC admin, metrics). Implementations are
// thread-safe; every call returns a consistent copy and takes no lock that is held over a driver
// call or an RPC.

#ifndef TIDEMARK_DAEMON_NODE_H_
#define TIDEMARK_DAEMON_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/wire.h"

namespace tidemark::daemon {

enum class Level { kOff, kNormal, kAggressive };

// One policy entry with every field decided; see PolicyEntry in proto/tidemark/v1/admin.proto.
struct PolicyEntry {
  std::string name;
  Level level = Level::kNormal;
  uint64_t device_budget_bytes = 0;
  uint64_t host_budget_bytes = 0;
  uint64_t guarantee_bytes = 0;
  int32_t priority = 0;
  uint64_t min_size_bytes = 2 << 20;
  uint32_t max_slowdown_permille = 0;
  std::vector<std::string> movable_classes;
};

struct Policy {
  uint64_t generation = 0;
  std::map<std::string, PolicyEntry> entries;  // always holds "default"
};

struct DeviceSnapshot {
  uint32_t index = 0;
  std::string uuid;
  std::string name;
  uint64_t total_bytes = 0;
  uint64_t pool_budget_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t pooled_bytes = 0;
  uint64_t foreign_bytes = 0;
  bool foreign_measured = false;  // false: only what a refusal of the driver told lately
  uint64_t free_bytes = 0;
};

struct JobDeviceSnapshot {
  uint32_t device = 0;
  uint64_t budget_bytes = 0;
  uint64_t leased_bytes = 0;
  uint64_t host_budget_bytes = 0;
  uint64_t host_leased_bytes = 0;
  tm_wire_counters_device counters = {};  // as the job last wrote them
};

struct JobSnapshot {
  uint64_t id = 0;
  std::string name;
  uint32_t pid = 0;
  uint32_t uid = 0;
  absl::Time attached;
  std::string policy;
  uint64_t daemon_round_trips_total = 0;
  uint64_t reconnects_total = 0;
  std::vector<JobDeviceSnapshot> devices;
};

// What the jobs of one user hold together, and may; quotas of 0 are none.
struct UserSnapshot {
  uint32_t uid = 0;
  uint32_t jobs = 0;
  std::vector<uint64_t> device_held_bytes;  // by device
  uint64_t device_quota_bytes = 0;          // on each device
  uint64_t host_held_bytes = 0;
  uint64_t host_quota_bytes = 0;
};

struct NodeSnapshot {
  std::string hostname;
  absl::Time started;
  uint64_t chunk_bytes = 0;
  uint64_t host_budget_bytes = 0;
  uint64_t host_used_bytes = 0;
  uint64_t host_available_bytes = 0;
  uint64_t leases_total = 0;          // chunks ever leased
  uint64_t lease_refusals_total = 0;  // requests answered with less than asked
  uint64_t reconnects_total = 0;      // jobs that came back after a daemon restart
  uint64_t bad_messages_total = 0;    // datagrams dropped as malformed
  std::vector<DeviceSnapshot> devices;
  std::vector<JobSnapshot> jobs;
  std::vector<UserSnapshot> users;  // that have jobs
};

struct ChunkRun {
  uint32_t device = 0;
  tm_wire_place place = TM_WIRE_DEVICE;
  uint64_t first_chunk_id = 0;
  uint64_t count = 0;
  bool adopted = false;
};

struct Event {
  uint64_t id = 0;
  absl::Time time;
  std::string kind;
  uint64_t job_id = 0;
  std::string sentence;
};

struct PolicyChange {
  std::vector<PolicyEntry> set;  // complete entries, merged by the caller
  std::vector<std::string> remove;
  bool replace_all = false;
  std::string actor;  // for the audit log: "uid 1000 pid 4242"
};

class Node {
 public:
  virtual ~Node() = default;

  virtual NodeSnapshot Snapshot() = 0;
  virtual absl::StatusOr<std::vector<ChunkRun>> MemoryMap(uint64_t job_id) = 0;

  virtual Policy GetPolicy() = 0;
  // InvalidArgument names field, value and accepted range; nothing changes then. On success the new
  // policy is on disk and in the audit log before this returns.
  virtual absl::StatusOr<Policy> ChangePolicy(const PolicyChange& change) = 0;
  virtual absl::StatusOr<std::vector<std::string>> ExplainPolicy(uint64_t job_id) = 0;

  // Asks the job to move bytes; it acts at its next launch or allocation. Returns the bytes asked
  // for after clamping to what the job holds.
  virtual absl::StatusOr<uint64_t> RequestEvict(uint64_t job_id, uint64_t bytes) = 0;
  virtual absl::StatusOr<uint64_t> RequestPrefetch(uint64_t job_id, uint64_t bytes) = 0;
  // A pinned job is never asked to shrink below what it holds.
  virtual absl::Status SetPinned(uint64_t job_id, bool pinned) = 0;

  // Events kept in memory with id > after_id, oldest first.
  virtual std::vector<Event> EventsAfter(uint64_t after_id) = 0;
  // Blocks until an event with id > after_id exists or `timeout` passed.
  virtual void WaitForEvent(uint64_t after_id, absl::Duration timeout) = 0;

  virtual std::string DriverPath() = 0;
  virtual int DriverVersion() = 0;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_NODE_H_
