#include "daemon/datagram.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

#include "proto/wire.h"

namespace tidemark::daemon {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * TM_WIRE_MAX_FDS);

void CollectFds(msghdr* message, std::vector<UniqueFd>* fds) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
}

}  // namespace

absl::StatusOr<Datagram> ReceiveDatagram(int socket, uint8_t* buffer, size_t size) {
  iovec piece = {buffer, size};
  alignas(cmsghdr) char control[kControlBytes];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return absl::UnavailableError("nothing to read");
    return absl::ErrnoToStatus(errno, "reading from a socket");
  }
  Datagram datagram;
  datagram.size = static_cast<size_t>(got);
  datagram.truncated = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  CollectFds(&message, &datagram.fds);
  return datagram;
}

absl::Status SendDatagram(int socket, const std::vector<uint8_t>& bytes,
                          const std::vector<UniqueFd>& fds) {
  iovec piece = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    for (size_t i = 0; i < fds.size(); ++i) {
      const int fd = fds[i].get();
      std::memcpy(CMSG_DATA(part) + i * sizeof(int), &fd, sizeof(int));
    }
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return absl::OkStatus();
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    return absl::UnavailableError("the peer does not read its replies");
  }
  return absl::ErrnoToStatus(errno, "writing to a socket");
}

}  // namespace tidemark::daemon
