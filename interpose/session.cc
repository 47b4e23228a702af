// Implementation of interpose/session.h. Threads: as the header says.

#include "interpose/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "interpose/log.h"
#include "proto/address.h"
#include "proto/datagram.h"

namespace tidemark::interpose {
namespace {

constexpr int64_t kMillisecond = 1000000;
constexpr int64_t kDeadlineNs =
    5000 * kMillisecond;  // a lease may create chunks, a slow driver call
constexpr int64_t kAttachDeadlineNs = 1000 * kMillisecond;  // nobody needs anything yet
constexpr int64_t kFirstPauseNs = 100 * kMillisecond;
constexpr int64_t kLongestPauseNs = 5000 * kMillisecond;
constexpr uint32_t kMostChunks = TM_WIRE_MAX_CHUNKS;
constexpr uint64_t kOwnId = uint64_t{1} << 63;  // marks ids that no daemon gave

}  // namespace

struct Session::Reply {
  union {
    tm_wire_header header;
    tm_wire_welcome welcome;
    tm_wire_leased leased;
    tm_wire_done done;
    char bytes[1024];
  };
  int fds[TM_WIRE_MAX_FDS];
  uint32_t fd_count = 0;
  Reply() : bytes{} {}
  void CloseFds() {
    while (fd_count != 0) close(fds[--fd_count]);
  }
};

IdList::~IdList() { free(ids_); }

bool IdList::Add(uint64_t id) {
  if (size_ == capacity_) {
    const uint32_t capacity = capacity_ == 0 ? 256 : 2 * capacity_;
    void* grown = realloc(ids_, capacity * sizeof(uint64_t));
    if (grown == nullptr) return false;
    ids_ = static_cast<uint64_t*>(grown);
    capacity_ = capacity;
  }
  ids_[size_++] = id;
  return true;
}

bool IdList::Remove(uint64_t id) {
  for (uint32_t i = size_; i-- > 0;) {
    if (ids_[i] != id) continue;
    ids_[i] = ids_[--size_];
    return true;
  }
  return false;
}

bool Session::Attach(const char* socket_path, const JobDescription& job) {
  MutexLock lock(&mutex_);
  job_ = job;
  if (socket_path[0] == 0) return false;
  if (strlen(socket_path) >= sizeof(path_)) {
    Warn(
        "TIDEMARK_SOCKET has %zu characters, a socket path has at most %zu; running without a "
        "daemon",
        strlen(socket_path), sizeof(path_) - 1);
    return false;
  }
  strcpy(path_, socket_path);
  return Connect();
}

bool Session::Ready() {
  if (attached()) return true;
  MutexLock lock(&mutex_);
  if (attached()) return true;
  const bool again = has_been_attached();
  if (!wanted() || NowNs() < retry_at_ns_) return false;
  if (Connect()) {
    if (again) ++reconnects_;
    return true;
  }
  if (retry_pause_ns_ == 0) retry_pause_ns_ = kFirstPauseNs;
  retry_pause_ns_ = 2 * retry_pause_ns_ < kLongestPauseNs ? 2 * retry_pause_ns_ : kLongestPauseNs;
  retry_at_ns_ = NowNs() + retry_pause_ns_;
  return false;
}

void Session::Check() {
  {
    MutexLock lock(&mutex_);
    char byte;
    // Nothing is ever sent unasked: readable means closed, or a peer that is not ours.
    if (attached() && (recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN)) {
      Close();
    }
  }
  if (!attached()) Ready();
}

bool Session::Connect() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path_, sizeof(path_));
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket_ < 0) return false;
  if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      !Believed()) {
    close(socket_);
    socket_ = -1;
    return false;
  }
  if (!Hello() || !AdoptAll()) {
    Close();
    return false;
  }
  retry_pause_ns_ = 0;
  return true;
}

// A daemon gets to see every byte that leaves the device.
bool Session::Believed() {
  uid_t peer = 0;
  if (proto::MayServe(socket_, path_, &peer)) return true;
  if (!told_) {
    Warn(
        "the process that listens on %s is of user %u, neither root nor this job's; running "
        "without a daemon",
        path_, peer);
  }
  told_ = true;
  return false;
}

void Session::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  if (retry_pause_ns_ == 0) retry_pause_ns_ = kFirstPauseNs;
  retry_at_ns_ = NowNs() + retry_pause_ns_;
}

bool Session::Hello() {
  tm_wire_hello hello = {};
  hello.pid = static_cast<uint32_t>(getpid());
  hello.device_count = job_.device_count;
  memcpy(hello.device_uuid, job_.device_uuid, sizeof(hello.device_uuid));
  hello.device_budget_bytes = job_.device_budget_bytes;
  hello.host_budget_bytes = job_.host_budget_bytes;
  hello.resume_job_id = job_id_;
  memcpy(hello.job_name, job_.job_name, sizeof(hello.job_name));
  Reply reply;
  if (!Call(&hello, sizeof(hello), TM_WIRE_HELLO, &reply)) return false;
  const tm_wire_welcome& welcome = reply.welcome;
  const bool good = reply.header.type == TM_WIRE_WELCOME && welcome.outcome == TM_WIRE_OK &&
                    welcome.chunk_bytes == UINT64_C(2) << 20 && reply.fd_count == 2;
  if (!good) {
    const bool said = reply.header.type == TM_WIRE_WELCOME && welcome.outcome != TM_WIRE_OK;
    if (!told_) {
      Warn("the daemon at %s did not take this job (%s); running without it", path_,
           said ? welcome.reason : "its answer was not understood");
    }
    told_ = true;
    reply.CloseFds();
    return false;
  }
  job_id_ = welcome.job_id;
  memcpy(device_index_, welcome.device_index, sizeof(device_index_));
  MapPages(reply.fds[0], reply.fds[1]);
  reply.CloseFds();
  return policy_ != nullptr && counters_ != nullptr;
}

// The former pages stay mapped: another thread may be reading them.
void Session::MapPages(int policy_fd, int counters_fd) {
  void* policy = mmap(nullptr, sizeof(tm_wire_policy_page), PROT_READ, MAP_SHARED, policy_fd, 0);
  void* counters = mmap(nullptr, sizeof(tm_wire_counters_page), PROT_READ | PROT_WRITE, MAP_SHARED,
                        counters_fd, 0);
  if (policy == MAP_FAILED || counters == MAP_FAILED) return;
  // A child must not write the parent's counters.
  madvise(counters, sizeof(tm_wire_counters_page), MADV_DONTFORK);
  policy_ = static_cast<const tm_wire_policy_page*>(policy);
  counters_ = static_cast<tm_wire_counters_page*>(counters);
}

bool Session::AdoptAll() {
  if (reconnects_ == 0 && next_own_ == 0 && round_trips_ <= 1)
    return true;  // first time: holds nothing
  for (uint32_t device = 0; device < job_.device_count; ++device) {
    if (device_index_[device] < 0) continue;
    if (!AdoptList(device, Place::kDevice) || !AdoptList(device, Place::kHost)) return false;
  }
  tm_wire_chunks end = {};
  end.last = 1;
  for (uint32_t device = 0; device < job_.device_count; ++device) {
    if (device_index_[device] >= 0) end.device = static_cast<uint32_t>(device_index_[device]);
  }
  Reply reply;
  return Call(&end, sizeof(end), TM_WIRE_ADOPT, &reply) && reply.done.outcome == TM_WIRE_OK;
}

bool Session::AdoptList(uint32_t device, Place place) {
  const IdList& list = held_[device][static_cast<int>(place)];
  for (uint32_t first = 0; first < list.size(); first += TM_WIRE_MAX_CHUNKS) {
    tm_wire_chunks chunks = {};
    chunks.device = static_cast<uint32_t>(device_index_[device]);
    chunks.place = static_cast<uint32_t>(place);
    const uint32_t left = list.size() - first;
    chunks.count = left < kMostChunks ? left : kMostChunks;
    for (uint32_t i = 0; i < chunks.count; ++i) chunks.chunk_id[i] = list.at(first + i);
    Reply reply;
    if (!Call(&chunks, sizeof(chunks), TM_WIRE_ADOPT, &reply)) return false;
    if (reply.header.type != TM_WIRE_DONE || reply.done.outcome != TM_WIRE_OK) {
      if (!told_) Warn("the daemon did not adopt this job's chunks (%s)", reply.done.reason);
      told_ = true;
      return false;
    }
  }
  return true;
}

bool Session::Call(void* request, uint32_t size, uint16_t type, Reply* reply) {
  auto* header = static_cast<tm_wire_header*>(request);
  *header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, type, size, ++sequence_};
  ++round_trips_;
  const bool attaching = type == TM_WIRE_HELLO || type == TM_WIRE_ADOPT;
  const int64_t wait = attaching ? kAttachDeadlineNs : kDeadlineNs;
  ssize_t sent;
  do {
    sent = send(socket_, request, size, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent == static_cast<ssize_t>(size) && Receive(sequence_, wait, reply)) return true;
  Close();
  return false;
}

bool Session::Receive(uint32_t sequence, int64_t deadline_ns, Reply* reply) {
  const int64_t deadline = NowNs() + deadline_ns;
  for (;;) {
    const int64_t left_ms = (deadline - NowNs()) / kMillisecond;
    if (left_ms <= 0) return false;
    pollfd wait = {socket_, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left_ms)) <= 0) continue;
    proto::ReceivedFds received;
    const ssize_t got = proto::ReceiveDatagram(socket_, reply->bytes, sizeof(reply->bytes),
                                               MSG_DONTWAIT, &received);
    if (got < 0 && errno == EAGAIN) continue;
    memcpy(reply->fds, received.fds, received.count * sizeof(int));
    reply->fd_count = received.count;
    const bool whole = got >= static_cast<ssize_t>(sizeof(tm_wire_header)) && !received.truncated &&
                       reply->header.magic == TM_WIRE_MAGIC && reply->header.size == got &&
                       reply->header.version == TM_WIRE_VERSION &&
                       reply->header.sequence == sequence;
    if (!whole) reply->CloseFds();
    return whole;
  }
}

Answer Session::Lease(uint32_t device, Place place, uint32_t count, int* fds, uint64_t* ids,
                      uint32_t* got) {
  *got = 0;
  if (!Ready() || device_index_[device] < 0) return Answer::kAlone;
  MutexLock lock(&mutex_);
  if (!attached()) return Answer::kAlone;
  tm_wire_lease lease = {};
  lease.device = static_cast<uint32_t>(device_index_[device]);
  lease.place = static_cast<uint32_t>(place);
  lease.count = count;
  lease.at_least = 1;
  Reply reply;
  if (!Call(&lease, sizeof(lease), TM_WIRE_LEASE, &reply)) return Answer::kAlone;
  const tm_wire_leased& leased = reply.leased;
  if (reply.header.type != TM_WIRE_LEASED || leased.outcome != TM_WIRE_OK) {
    reply.CloseFds();
    if (reply.header.type == TM_WIRE_LEASED && leased.outcome == TM_WIRE_NO_MEMORY) {
      return Answer::kNoMemory;
    }
    if (!told_) Warn("the daemon leased nothing (%s)", reply.done.reason);
    told_ = true;
    return Answer::kRefused;
  }
  if (leased.count != reply.fd_count || leased.count > count) {
    reply.CloseFds();
    Close();
    return Answer::kAlone;
  }
  IdList& list = held_[device][static_cast<int>(place)];
  for (uint32_t i = 0; i < leased.count; ++i) {
    fds[i] = reply.fds[i];
    ids[i] = leased.chunk_id[i];
    list.Add(ids[i]);
  }
  *got = leased.count;
  return Answer::kOk;
}

void Session::Return(uint32_t device, Place place, const uint64_t* ids, uint32_t count) {
  MutexLock lock(&mutex_);
  tm_wire_chunks chunks = {};
  for (uint32_t i = 0; i < count; ++i) held_[device][static_cast<int>(place)].Remove(ids[i]);
  if (!attached() || device_index_[device] < 0) return;
  chunks.device = static_cast<uint32_t>(device_index_[device]);
  chunks.place = static_cast<uint32_t>(place);
  for (uint32_t i = 0; i < count; ++i) {
    chunks.chunk_id[chunks.count++] = ids[i];
    if (chunks.count < TM_WIRE_MAX_CHUNKS && i + 1 < count) continue;
    Reply reply;
    if (!Call(&chunks, sizeof(chunks), TM_WIRE_RETURN, &reply)) return;
    reply.CloseFds();
    chunks.count = 0;
  }
}

uint64_t Session::AddOwn(uint32_t device, Place place) {
  MutexLock lock(&mutex_);
  const uint64_t id =
      kOwnId | (static_cast<uint64_t>(static_cast<uint32_t>(getpid())) << 32) | ++next_own_;
  return held_[device][static_cast<int>(place)].Add(id) ? id : 0;
}

Answer Session::Share(const tm_wire_share& share) {
  if (!Ready()) return Answer::kAlone;
  MutexLock lock(&mutex_);
  if (!attached()) return Answer::kAlone;
  tm_wire_share request = share;
  Reply reply;
  if (!Call(&request, sizeof(request), TM_WIRE_SHARE, &reply)) return Answer::kAlone;
  reply.CloseFds();
  return reply.header.type == TM_WIRE_DONE && reply.done.outcome == TM_WIRE_OK ? Answer::kOk
                                                                               : Answer::kRefused;
}

Answer Session::OpenShare(const uint8_t token[32], uint32_t first, int* fds, uint32_t* got) {
  *got = 0;
  if (!Ready()) return Answer::kAlone;
  MutexLock lock(&mutex_);
  if (!attached()) return Answer::kAlone;
  tm_wire_share request = {};
  memcpy(request.token, token, sizeof(request.token));
  request.first = first;
  request.count = TM_WIRE_MAX_FDS;
  Reply reply;
  if (!Call(&request, sizeof(request), TM_WIRE_OPEN_SHARE, &reply)) return Answer::kAlone;
  if (reply.header.type != TM_WIRE_LEASED || reply.leased.outcome != TM_WIRE_OK) {
    reply.CloseFds();
    return Answer::kRefused;
  }
  for (uint32_t i = 0; i < reply.fd_count; ++i) fds[i] = reply.fds[i];
  *got = reply.fd_count;
  return Answer::kOk;
}

uint64_t Session::PolicySequence() const {
  if (policy_ == nullptr) return 0;
  return __atomic_load_n(&policy_->sequence, __ATOMIC_ACQUIRE) + (reconnects_ << 40);
}

bool Session::ReadPolicy(tm_wire_policy_page* page) const {
  if (policy_ == nullptr) return false;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t before = PolicySequence();
    if (before % 2 != 0) continue;
    memcpy(page, policy_, sizeof(*page));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (PolicySequence() != before) continue;
    return page->magic == TM_WIRE_MAGIC && page->version == TM_WIRE_PAGE_VERSION;
  }
  return false;  // the writer died in the middle; what was read before stays in force
}

void Session::Abandon() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
  job_id_ = 0;
  counters_ = nullptr;
}

}  // namespace tidemark::interpose
