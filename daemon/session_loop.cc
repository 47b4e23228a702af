#include "daemon/session_loop.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/datagram.h"
#include "daemon/wire_message.h"

namespace tidemark::daemon {
namespace {

constexpr absl::Duration kHelloDeadline = absl::Seconds(5);
constexpr int kTickMilliseconds = 500;
constexpr size_t kMostConnections = 4096;
constexpr size_t kMostConnectionsPerUser = 1024;  // one user cannot lock the others out
constexpr int kEventsPerWait = 64;

absl::Status Watch(int epoll, int fd) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLRDHUP;
  event.data.fd = fd;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "watching a socket");
}

Peer PeerOf(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  Peer peer;
  peer.uid = static_cast<uid_t>(-1);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0) {
    peer.pid = static_cast<uint32_t>(credentials.pid);
    peer.uid = credentials.uid;
  }
  return peer;
}

// Invalid when the kernel or the namespace does not show the process; its connection must do then.
UniqueFd ProcessOf(const Peer& peer) {
  if (peer.pid == 0) return UniqueFd();
  return UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0)));
}

}  // namespace

absl::Status CheckSocketPath(const std::string& path) {
  constexpr size_t kMost = sizeof(sockaddr_un::sun_path) - 1;
  if (!path.empty() && path.size() <= kMost) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("socket \"", path, "\" has ", path.size(),
                                                 " bytes; a Unix socket path has 1 to ", kMost));
}

SessionLoop::SessionLoop(std::string path, Broker* broker)
    : path_(std::move(path)), broker_(broker) {}

absl::StatusOr<std::unique_ptr<SessionLoop>> SessionLoop::Open(const std::string& path,
                                                               Broker* broker) {
  std::unique_ptr<SessionLoop> loop(new SessionLoop(path, broker));
  if (absl::Status status = loop->Bind(); !status.ok()) return status;
  loop->epoll_ = UniqueFd(epoll_create1(EPOLL_CLOEXEC));
  loop->wake_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  loop->spare_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!loop->epoll_.valid() || !loop->wake_.valid()) {
    return absl::ErrnoToStatus(errno, "making the session loop");
  }
  for (const int fd : {loop->listener_.get(), loop->wake_.get()}) {
    if (absl::Status status = Watch(loop->epoll_.get(), fd); !status.ok()) return status;
  }
  return loop;
}

absl::Status SessionLoop::Bind() {
  if (absl::Status status = CheckSocketPath(path_); !status.ok()) return status;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  const std::string lock_path = path_ + ".lock";
  lock_ = UniqueFd(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock_.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", lock_path));
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(absl::StrCat("another tidemarkd is running and serves ",
                                                      path_, "; stop it or choose another socket"));
  }
  struct stat facts = {};
  if (lstat(path_.c_str(), &facts) == 0) {
    if (!S_ISSOCK(facts.st_mode)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " exists and is not a socket; it was left alone"));
    }
    unlink(path_.c_str());
  }
  listener_ = UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return absl::ErrnoToStatus(errno, "making the job socket");
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("binding ", path_));
  }
  bound_ = true;
  // Everybody may knock; who may attach is decided by uid, with a sentence for the others.
  if (chmod(path_.c_str(), 0666) != 0 || listen(listener_.get(), SOMAXCONN) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("listening on ", path_));
  }
  return absl::OkStatus();
}

SessionLoop::~SessionLoop() {
  if (bound_) unlink(path_.c_str());
}

void SessionLoop::Wake() {
  const uint64_t one = 1;
  // A full counter means that a wake-up is pending already.
  [[maybe_unused]] const ssize_t ignored = write(wake_.get(), &one, sizeof(one));
}

void SessionLoop::Stop() {
  stop_ = true;
  Wake();
}

bool SessionLoop::MayConnect(uid_t uid) const {
  if (sessions_.size() >= kMostConnections) return false;
  size_t same = 0;
  for (const auto& [fd, session] : sessions_) same += session.peer.uid == uid;
  return same < kMostConnectionsPerUser;
}

void SessionLoop::Admit(UniqueFd fd) {
  const int number = fd.get();
  Session session;
  session.peer = PeerOf(number);
  if (!MayConnect(session.peer.uid) || !Watch(epoll_.get(), number).ok()) return;
  // A forked child keeps the connection open; the process itself tells when the job is dead.
  session.process = ProcessOf(session.peer);
  const int process = session.process.get();
  if (process >= 0 && Watch(epoll_.get(), process).ok()) process_of_[process] = number;
  session.accepted = absl::Now();
  session.fd = std::move(fd);
  sessions_.insert_or_assign(number, std::move(session));
}

// Out of descriptors: without this the waiting connection would keep the loop spinning.
void SessionLoop::TurnAway() {
  spare_.Reset();
  UniqueFd refused(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  refused.Reset();  // before its number is taken again
  spare_ = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
}

void SessionLoop::Accept() {
  for (;;) {
    UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      Admit(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE) {
      return TurnAway();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

std::string SessionLoop::Answer(Session* session, const uint8_t* bytes, size_t size) {
  const Reading reading = ReadRequest(bytes, size);
  const tm_wire_header& header = reading.request.header;
  if (reading.verdict == Verdict::kDrop) {
    broker_->NoteBadMessage(session->peer, reading.reason);
    return absl::StrCat("it sent ", reading.reason);
  }
  const bool attached = session->attachment.job != kNobody;
  Reply reply;
  if (reading.verdict == Verdict::kRefuse) {
    broker_->NoteBadMessage(session->peer, reading.reason);
    reply = OutcomeReply(header, reading.outcome, reading.reason);
  } else if (attached) {
    reply = broker_->Serve(session->attachment, reading.request);
  } else if (header.type == TM_WIRE_HELLO) {
    const auto& hello = std::get<tm_wire_hello>(reading.request.body);
    Peer peer = session->peer;
    if (peer.pid == 0) peer.pid = hello.pid;  // a process of a namespace we cannot see into
    reply = broker_->Hello(peer, header, hello, &session->attachment);
  } else {
    reply = OutcomeReply(header, TM_WIRE_BAD_REQUEST, "the first message must be HELLO");
  }
  if (session->attachment.job == kNobody) reply.close_reason = "it did not attach";
  if (absl::Status sent = SendDatagram(session->fd.get(), reply.bytes, reply.fds); !sent.ok()) {
    return std::string(sent.message());
  }
  return reply.close_reason;
}

std::string SessionLoop::ServeOne(Session* session) {
  // One byte more than the largest message, so that a longer one is seen to be longer.
  alignas(8) uint8_t buffer[kMaxDatagramBytes + 1];
  absl::StatusOr<Datagram> datagram = ReceiveDatagram(session->fd.get(), buffer, sizeof(buffer));
  if (absl::IsUnavailable(datagram.status())) return "";
  if (!datagram.ok()) return std::string(datagram.status().message());
  if (datagram->size == 0) return "its connection ended";
  if (datagram->truncated) {
    broker_->NoteBadMessage(session->peer, "a datagram longer than any message");
    return "it sent a datagram longer than any message";
  }
  if (!datagram->fds.empty()) {
    broker_->NoteBadMessage(session->peer, "descriptors, which were closed");
    datagram->fds.clear();
  }
  return Answer(session, buffer, datagram->size);
}

void SessionLoop::Serve(int fd) {
  if (const auto dead = process_of_.find(fd); dead != process_of_.end()) {
    return Close(dead->second, "its process ended");
  }
  const auto found = sessions_.find(fd);
  if (found == sessions_.end()) return;
  if (const std::string why = ServeOne(&found->second); !why.empty()) Close(fd, why);
}

void SessionLoop::Close(int fd, const std::string& why) {
  const auto found = sessions_.find(fd);
  const Attachment attachment = found->second.attachment;
  process_of_.erase(found->second.process.get());
  sessions_.erase(found);
  if (attachment.job != kNobody) broker_->Detach(attachment, why);
}

void SessionLoop::CloseSilent() {
  std::vector<int> silent;
  for (const auto& [fd, session] : sessions_) {
    if (session.attachment.job == kNobody && absl::Now() - session.accepted > kHelloDeadline) {
      silent.push_back(fd);
    }
  }
  for (const int fd : silent) Close(fd, "it said nothing");
}

void SessionLoop::Run(const std::function<void()>& on_wake) {
  absl::Time next_tick = absl::Now();
  while (!stop_) {
    epoll_event events[kEventsPerWait];
    const int patience = broker_->Reap() ? 0 : kTickMilliseconds;
    const int count = epoll_wait(epoll_.get(), events, kEventsPerWait, patience);
    for (int i = 0; i < std::max(count, 0); ++i) {
      const int fd = events[i].data.fd;
      if (fd == listener_.get()) {
        Accept();
      } else if (fd == wake_.get()) {
        uint64_t drained;
        [[maybe_unused]] const ssize_t ignored = read(wake_.get(), &drained, sizeof(drained));
        on_wake();
      } else {
        Serve(fd);
      }
    }
    if (absl::Now() < next_tick) continue;
    next_tick = absl::Now() + absl::Milliseconds(kTickMilliseconds);
    CloseSilent();
    broker_->Tick();
  }
}

}  // namespace tidemark::daemon
