#include "daemon/broker.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "daemon/byte_text.h"
#include "daemon/check.h"

namespace tidemark::daemon {
namespace {

constexpr size_t kEventsKept = 4096;
constexpr uint64_t kChunksPerReap = 256;

std::string Hostname() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

// Chunk ids of this start: never seen under this state folder before, top bit clear.
ChunkId FirstChunkId(const StateDir& state) { return state.start_number() << 32 | 1; }

std::string Describe(const std::string& name, const Peer& peer) {
  return absl::StrCat(name, " (pid ", peer.pid, ", uid ", peer.uid, ")");
}

absl::StatusOr<UniqueFd> Duplicate(int fd) {
  UniqueFd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  return absl::ErrnoToStatus(errno, "duplicating a shared page's descriptor");
}

}  // namespace

Broker::Broker(Hardware hardware, StateDir* state, BrokerOptions options, Surroundings surroundings)
    : hardware_(std::move(hardware)),
      world_(std::move(surroundings)),
      hostname_(Hostname()),
      started_(world_.now()),
      state_(state),
      pool_(*hardware_.driver, hardware_.devices, hardware_.chunk_bytes, FirstChunkId(*state)),
      events_(kEventsKept),
      options_(std::move(options)),
      policy_(state->policy()) {
  MutexLock lock(&mutex_);
  RefreshHost();
  host_budget_bytes_ = options_.host_budget_bytes.value_or(host_.available_bytes / 2);
}

bool Broker::MayAttach(uid_t uid) const {
  return options_.allow_every_uid || uid == geteuid() || uid == 0 ||
         options_.allow_uids.count(uid) != 0;
}

void Broker::MatchDevices(const tm_wire_hello& hello, tm_wire_welcome* welcome) const {
  std::fill(std::begin(welcome->device_index), std::end(welcome->device_index), -1);
  for (uint32_t ordinal = 0; ordinal < hello.device_count; ++ordinal) {
    for (size_t device = 0; device < hardware_.devices.size(); ++device) {
      if (std::equal(hardware_.devices[device].uuid.begin(), hardware_.devices[device].uuid.end(),
                     hello.device_uuid[ordinal])) {
        welcome->device_index[ordinal] = static_cast<int32_t>(device);
        ++welcome->device_count;
        break;
      }
    }
  }
}

std::string Broker::WhyNot(const Peer& peer, const tm_wire_welcome& welcome) {
  MutexLock lock(&mutex_);
  if (!MayAttach(peer.uid)) {
    return absl::StrCat("uid ", peer.uid, " may not attach: it is not in allow_uids");
  }
  if (jobs_.size() >= options_.max_jobs) {
    return absl::StrCat("max_jobs ", options_.max_jobs, " are attached already");
  }
  if (welcome.device_count == 0) return "this daemon manages none of the job's devices";
  return "";
}

absl::StatusOr<JobId> Broker::IdFor(const Peer& peer, const tm_wire_hello& hello, bool* resumed) {
  Attachment former{hello.resume_job_id, 0};
  *resumed = false;
  {
    MutexLock lock(&mutex_);
    const auto live = jobs_.find(former.job);
    if (live != jobs_.end()) {
      // The same process on a new connection; anybody else gets an id of its own.
      if (live->second.peer.uid == peer.uid && live->second.peer.pid == peer.pid) {
        former.serial = live->second.serial;
      } else {
        former.job = kNobody;
      }
    }
  }
  if (former.serial != 0) Detach(former, "it connected anew");
  MutexLock disk(&disk_mutex_);
  if (state_->Known(former.job)) {
    *resumed = true;
    return former.job;
  }
  return state_->NextJobId();
}

absl::StatusOr<std::vector<UniqueFd>> Broker::Attach(JobId id, Job job) {
  std::vector<UniqueFd> fds;
  for (const int fd : {job.policy_page.fd(), job.counter_page.fd()}) {
    absl::StatusOr<UniqueFd> copy = Duplicate(fd);
    if (!copy.ok()) return copy.status();
    fds.push_back(*std::move(copy));
  }
  MutexLock lock(&mutex_);
  if (job.resumed) ++reconnects_total_;
  ledger_.AddJob(id, job.peer.uid);
  jobs_.emplace(id, std::move(job));
  Publish();
  return fds;
}

Reply Broker::Hello(const Peer& peer, const tm_wire_header& header, const tm_wire_hello& hello,
                    Attachment* attachment) {
  tm_wire_welcome welcome = {};
  MatchDevices(hello, &welcome);
  if (const std::string why = WhyNot(peer, welcome); !why.empty()) {
    AddEvent("job_refused", kNobody, absl::StrCat(Describe(hello.job_name, peer), ": ", why));
    return OutcomeReply(header, TM_WIRE_REFUSED, why);
  }
  absl::StatusOr<PolicyPage> policy = PolicyPage::Create();
  absl::StatusOr<CounterPage> counters = CounterPage::Create();
  if (!policy.ok()) return OutcomeReply(header, TM_WIRE_INTERNAL, policy.status().message());
  if (!counters.ok()) return OutcomeReply(header, TM_WIRE_INTERNAL, counters.status().message());
  Job job(*std::move(policy), *std::move(counters));
  absl::StatusOr<JobId> id = IdFor(peer, hello, &job.resumed);
  if (!id.ok()) return OutcomeReply(header, TM_WIRE_INTERNAL, id.status().message());
  job.name = hello.job_name;
  job.peer = peer;
  job.attached = world_.now();
  job.asked_device_bytes = hello.device_budget_bytes;
  job.asked_host_bytes = hello.host_budget_bytes;
  {
    MutexLock lock(&mutex_);
    job.serial = ++last_serial_;
  }
  const Attachment fresh{*id, job.serial};
  const bool resumed = job.resumed;
  absl::StatusOr<std::vector<UniqueFd>> fds = Attach(*id, std::move(job));
  if (!fds.ok()) return OutcomeReply(header, TM_WIRE_INTERNAL, fds.status().message());
  *attachment = fresh;
  AddEvent("job_attached", *id,
           absl::StrCat("job ", *id, " ", Describe(hello.job_name, peer),
                        resumed ? " attached again" : " attached"));
  welcome.header = ReplyHeader(TM_WIRE_WELCOME, sizeof(welcome), header);
  welcome.job_id = *id;
  welcome.chunk_bytes = hardware_.chunk_bytes;
  Reply reply;
  reply.bytes = BytesOf(welcome);
  reply.fds = *std::move(fds);
  return reply;
}

Broker::Job* Broker::Find(const Attachment& attachment) {
  const auto found = jobs_.find(attachment.job);
  if (found == jobs_.end() || found->second.serial != attachment.serial) return nullptr;
  return &found->second;
}

bool Broker::Reap() { return pool_.Reap(kChunksPerReap); }

void Broker::Detach(const Attachment& attachment, const std::string& why) {
  std::vector<ChunkId> ended;
  std::string sentence;
  {
    MutexLock lock(&mutex_);
    const Job* job = Find(attachment);
    if (job == nullptr) return;
    sentence = absl::StrCat("job ", attachment.job, " ", Describe(job->name, job->peer),
                            " detached: ", why);
    ended = ledger_.RemoveJob(attachment.job);
    shares_.DropJob(attachment.job);
    jobs_.erase(attachment.job);
    Publish();
  }
  for (const ChunkId chunk : ended) pool_.Doom(chunk);
  AddEvent("job_detached", attachment.job, sentence);
}

void Broker::NoteBadMessage(const Peer& peer, const std::string& sentence) {
  {
    MutexLock lock(&mutex_);
    ++bad_messages_total_;
  }
  AddEvent("bad_message", kNobody,
           absl::StrCat("pid ", peer.pid, ", uid ", peer.uid, " sent ", sentence));
}

void Broker::Tick() {
  absl::Duration idle;
  {
    MutexLock lock(&mutex_);
    idle = options_.pool_idle;
  }
  const std::vector<ChunkId> trimmed = pool_.Trim(world_.now() - idle);
  const HostMemory host = world_.host_memory();
  std::vector<std::optional<uint64_t>> used;
  for (uint32_t i = 0; i < hardware_.devices.size(); ++i) used.push_back(world_.used_bytes(i));
  MutexLock lock(&mutex_);
  host_ = host;
  for (const ChunkId chunk : trimmed) ledger_.RemoveIdle(chunk);
  for (uint32_t i = 0; i < used.size(); ++i) NoteUsed(i, used[i]);
  Publish();
}

void Broker::Reconfigure(const BrokerOptions& options) {
  MutexLock lock(&mutex_);
  options_ = options;
  if (options_.host_budget_bytes.has_value()) host_budget_bytes_ = *options_.host_budget_bytes;
  Publish();
}

void Broker::AddEvent(const std::string& kind, JobId job, const std::string& sentence) {
  events_.Add(world_.now(), kind, job, sentence);
}

absl::Status Broker::Validate() {
  MutexLock lock(&mutex_);
  if (absl::Status status = ledger_.Validate(); !status.ok()) return status;
  for (uint32_t device = 0; device < hardware_.devices.size(); ++device) {
    for (const tm_wire_place place : {TM_WIRE_DEVICE, TM_WIRE_HOST}) {
      const Slot slot{device, place};
      const uint64_t created =
          ledger_.LeasedChunks(slot) - ledger_.AdoptedChunks(slot) + ledger_.IdleChunks(slot);
      if (created != pool_.ChunksIn(slot) - pool_.DoomedIn(slot)) {
        return absl::InternalError(absl::StrCat("the ledger counts ", created, " chunks on device ",
                                                device, " place ", place, ", the pool ",
                                                pool_.ChunksIn(slot)));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace tidemark::daemon
