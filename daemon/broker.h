// The daemon's one state and everything that changes it: decides by policy and arbiter, keeps the
// ledger, and has the pool carry out what was decided. Sessions bring it the jobs' requests; the
// admin service and the metrics see it as a Node. It knows no socket.
//
// Threads: the calls of the session loop come from one thread; the Node calls from any. The pool
// belongs to the session loop, so that no lock is held over a driver call.

#ifndef TIDEMARK_DAEMON_BROKER_H_
#define TIDEMARK_DAEMON_BROKER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "daemon/arbiter.h"
#include "daemon/event_ring.h"
#include "daemon/host_memory.h"
#include "daemon/ledger.h"
#include "daemon/mutex.h"
#include "daemon/node.h"
#include "daemon/policy.h"
#include "daemon/pool.h"
#include "daemon/quota.h"
#include "daemon/shared_page.h"
#include "daemon/shares.h"
#include "daemon/state_dir.h"
#include "daemon/wire_message.h"

namespace tidemark::daemon {

struct BrokerOptions {
  // Kept free on each device for contexts and other programs; unset: 1/32 of it, at most 1 GiB.
  std::optional<uint64_t> device_reserve_bytes;
  // Pinned host memory over all jobs; unset: half of what is available at start.
  std::optional<uint64_t> host_budget_bytes;
  absl::Duration pool_idle = absl::Seconds(5);  // idle chunks go back to the device after this
  std::set<uid_t> allow_uids;                   // beside the daemon's own user and root
  bool allow_every_uid = false;
  uint64_t max_jobs = 256;
};

// What the broker asks of the world, so that tests can be the world.
struct Surroundings {
  std::function<absl::Time()> now = absl::Now;
  std::function<HostMemory()> host_memory = [] { return ReadHostMemory(); };
  // Bytes of a device in use by anybody; nothing where that is not known. Called by Tick alone.
  std::function<std::optional<uint64_t>(uint32_t device)> used_bytes = [](uint32_t) {
    return std::nullopt;
  };
};

// The driver below and what it shows.
struct Hardware {
  const kernels::Driver* driver = nullptr;  // outlives the broker
  std::string driver_path;
  std::vector<ManagedDevice> devices;
  uint64_t chunk_bytes = 2 << 20;
};

using Quotas = std::map<uid_t, Quota>;

struct Peer {
  uint32_t pid = 0;
  uid_t uid = 0;
};

// One connection's claim to be a job: a job that reconnects keeps its id and gets a new serial.
struct Attachment {
  JobId job = kNobody;
  uint64_t serial = 0;
};

class Broker final : public Node {
 public:
  Broker(Hardware hardware, StateDir* state, BrokerOptions options, Surroundings surroundings = {});

  // ---- From the session loop.
  // WELCOME; on success `*attachment` names the new job.
  Reply Hello(const Peer& peer, const tm_wire_header& header, const tm_wire_hello& hello,
              Attachment* attachment);
  Reply Serve(const Attachment& attachment, const Request& request);
  // The connection ended: everything the job held returns.
  void Detach(const Attachment& attachment, const std::string& why);
  void NoteBadMessage(const Peer& peer, const std::string& sentence);
  // Trims idle chunks and lets old shortages expire. Called about twice a second.
  void Tick();
  // Gives some of what ended jobs left back to the device; returns whether more is left. Called
  // between requests, so that a large job's end delays nobody for long.
  bool Reap();
  void Reconfigure(const BrokerOptions& options);

  void AddEvent(const std::string& kind, JobId job, const std::string& sentence);
  // The ledger's walk, and that ledger, pool and budgets agree. From the session loop.
  absl::Status Validate();

  // ---- Node.
  NodeSnapshot Snapshot() override;
  absl::StatusOr<std::vector<ChunkRun>> MemoryMap(uint64_t job_id) override;
  Policy GetPolicy() override;
  absl::StatusOr<Policy> ChangePolicy(const PolicyChange& change) override;
  absl::StatusOr<std::vector<std::string>> ExplainPolicy(uint64_t job_id) override;
  absl::StatusOr<uint64_t> RequestEvict(uint64_t job_id, uint64_t bytes) override;
  absl::StatusOr<uint64_t> RequestPrefetch(uint64_t job_id, uint64_t bytes) override;
  absl::Status SetPinned(uint64_t job_id, bool pinned) override;
  std::vector<Event> EventsAfter(uint64_t after_id) override;
  void WaitForEvent(uint64_t after_id, absl::Duration timeout) override;
  std::string DriverPath() override;
  int DriverVersion() override;

 private:
  // What a job lately asked for in vain: others make room for it until it expires.
  struct Shortage {
    uint64_t wanted_chunks = 0;
    absl::Time until;
  };
  struct Job {
    Job(PolicyPage policy, CounterPage counter)
        : policy_page(std::move(policy)), counter_page(std::move(counter)) {}
    uint64_t serial = 0;
    std::string name;
    Peer peer;
    absl::Time attached;
    uint64_t asked_device_bytes = 0;  // 0: no wish
    uint64_t asked_host_bytes = 0;
    bool pinned = false;
    bool resumed = false;
    uint64_t adopted_chunks = 0;
    absl::Time last_refusal_event = absl::InfinitePast();
    std::map<uint32_t, Shortage> shortages;  // by device
    PolicyPage policy_page;
    CounterPage counter_page;
    tm_wire_policy_page published = {};
  };
  // What the driver last could give on a device, learned when it refused a chunk.
  struct Ceiling {
    uint64_t chunks = 0;
    absl::Time until = absl::InfinitePast();
  };
  // What is in use on a device outside Tidemark, as last measured.
  struct Foreign {
    uint64_t bytes = 0;
    uint64_t uncharged_bytes = 0;  // without what jobs charge to their own budgets
  };
  struct Lease {
    Slot slot;
    uid_t uid = 0;
    uint64_t count = 0;
    uint64_t cap = 0;  // chunks that may exist in the slot
  };

  // broker_budgets.cc
  uint64_t ReserveBytes(uint32_t device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t DeviceCap(uint32_t device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HostCap() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HostHeld() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HostHeldBy(JobId job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Chunks that all jobs of the user may hold in a place; kNoQuota: any number.
  uint64_t QuotaLimit(uid_t uid, tm_wire_place place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the users that have jobs. In host memory the slot's device is not looked at.
  Quotas QuotasIn(Slot slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t DeviceLimit(const Job& job, uint32_t device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HostLimit(const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Claim DeviceClaim(JobId id, const Job& job, uint32_t device) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Claim HostClaim(JobId id, const Job& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Budget(JobId id, Slot slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t DeviceBudget(JobId id, uint32_t device) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t HostBudget(JobId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PublishTo(JobId id, Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteUsed(uint32_t device, std::optional<uint64_t> used_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RefreshHost() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // broker.cc
  bool MayAttach(uid_t uid) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string WhyNot(const Peer& peer, const tm_wire_welcome& welcome) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<JobId> IdFor(const Peer& peer, const tm_wire_hello& hello, bool* resumed)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void MatchDevices(const tm_wire_hello& hello, tm_wire_welcome* welcome) const;
  absl::StatusOr<std::vector<UniqueFd>> Attach(JobId id, Job job) ABSL_LOCKS_EXCLUDED(mutex_);
  Job* Find(const Attachment& attachment) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // broker_requests.cc
  Reply Grant(const Attachment& attachment, const tm_wire_header& header,
              const tm_wire_lease& request) ABSL_LOCKS_EXCLUDED(mutex_);
  LeaseQuestion Ask(JobId id, const Job& job, const tm_wire_lease& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Reply NoMemory(JobId id, const tm_wire_header& header, const tm_wire_lease& request,
                 const LeaseAnswer& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Reply Settle(const Attachment& attachment, const tm_wire_header& header,
               const tm_wire_lease& request, const Pool::Taken& taken,
               absl::StatusOr<std::vector<UniqueFd>> fds) ABSL_LOCKS_EXCLUDED(mutex_);
  Reply NotCreated(JobId id, const tm_wire_header& header, const tm_wire_lease& request,
                   const std::vector<ChunkId>& got, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Follow(const Pool::Taken& taken, Slot slot, uid_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::vector<UniqueFd>> ExportAll(const std::vector<ChunkId>& chunks);
  Reply TakeBack(const Attachment& attachment, const tm_wire_header& header,
                 const tm_wire_chunks& request) ABSL_LOCKS_EXCLUDED(mutex_);
  Reply Adopt(const Attachment& attachment, const tm_wire_header& header,
              const tm_wire_chunks& request) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status AdoptAll(JobId id, const tm_wire_chunks& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Reply Share(const Attachment& attachment, const tm_wire_header& header,
              const tm_wire_share& request) ABSL_LOCKS_EXCLUDED(mutex_);
  Reply OpenShare(const Attachment& attachment, const tm_wire_header& header,
                  const tm_wire_share& request) ABSL_LOCKS_EXCLUDED(mutex_);

  // broker_node.cc
  DeviceSnapshot SnapshotDevice(uint32_t device) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  JobSnapshot SnapshotJob(JobId id, Job* job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<UserSnapshot> SnapshotUsers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string ExplainQuota(const PolicyEntry& quota, uid_t uid)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string ExplainDevice(JobId id, const Job& job, uint32_t device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Job*> Named(uint64_t job_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Hardware hardware_;
  const Surroundings world_;
  const std::string hostname_;
  const absl::Time started_;
  StateDir* const state_;  // outlives the broker
  Pool pool_;              // of the session loop
  EventRing events_;

  // Ranks: the disk lock first, then the state lock; the event ring's is a leaf.
  Mutex disk_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;
  BrokerOptions options_ ABSL_GUARDED_BY(mutex_);
  Policy policy_ ABSL_GUARDED_BY(mutex_);
  Ledger ledger_ ABSL_GUARDED_BY(mutex_);
  Shares shares_ ABSL_GUARDED_BY(mutex_);
  std::map<JobId, Job> jobs_ ABSL_GUARDED_BY(mutex_);  // by id, which is the order of attachment
  std::map<uint32_t, Ceiling> ceilings_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, Foreign> foreign_ ABSL_GUARDED_BY(mutex_);  // devices with a measurement
  HostMemory host_ ABSL_GUARDED_BY(mutex_);
  uint64_t host_budget_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t last_serial_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t leases_total_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t lease_refusals_total_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t reconnects_total_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t bad_messages_total_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_BROKER_H_
