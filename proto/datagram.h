// One datagram with descriptors over a Unix SOCK_SEQPACKET socket, for both ends of wire.h. Results
// are the system's: bytes, or -1 and errno; EINTR is tried again, SIGPIPE is never raised.
//
// Needs libc alone, allocates nothing. Threads: stateless.

#ifndef TIDEMARK_PROTO_DATAGRAM_H_
#define TIDEMARK_PROTO_DATAGRAM_H_

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "proto/wire.h"

namespace tidemark::proto {

struct ReceivedFds {
  int fds[TM_WIRE_MAX_FDS];  // the caller closes them, whatever else is wrong with the datagram
  uint32_t count = 0;
  bool truncated = false;  // the datagram was larger than the buffer, or brought more descriptors
};

inline ssize_t ReceiveDatagram(int socket, void* buffer, size_t size, int flags,
                               ReceivedFds* received) {
  iovec piece = {buffer, size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * TM_WIRE_MAX_FDS)];
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
  } while (got < 0 && errno == EINTR);
  received->count = 0;
  received->truncated = got >= 0 && (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  for (cmsghdr* part = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t bytes = part->cmsg_len - CMSG_LEN(0);
    memcpy(received->fds + received->count, CMSG_DATA(part), bytes);
    received->count += static_cast<uint32_t>(bytes / sizeof(int));
  }
  return got;
}

// `count` is at most TM_WIRE_MAX_FDS; the descriptors stay the caller's.
inline ssize_t SendDatagram(int socket, const void* bytes, size_t size, const int* fds,
                            uint32_t count) {
  iovec piece = {const_cast<void*>(bytes), size};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * TM_WIRE_MAX_FDS)] = {};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(part), fds, sizeof(int) * count);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

}  // namespace tidemark::proto

#endif  // TIDEMARK_PROTO_DATAGRAM_H_
