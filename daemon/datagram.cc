#include "daemon/datagram.h"

#include <errno.h>

#include "proto/datagram.h"

namespace tidemark::daemon {
namespace {

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

absl::StatusOr<Datagram> ReceiveDatagram(int socket, uint8_t* buffer, size_t size) {
  proto::ReceivedFds received;
  const ssize_t got = proto::ReceiveDatagram(socket, buffer, size, 0, &received);
  if (got < 0) {
    if (WouldBlock()) return absl::UnavailableError("nothing to read");
    return absl::ErrnoToStatus(errno, "reading from a socket");
  }
  Datagram datagram;
  datagram.size = static_cast<size_t>(got);
  datagram.truncated = received.truncated;
  for (uint32_t i = 0; i < received.count; ++i) datagram.fds.emplace_back(received.fds[i]);
  return datagram;
}

absl::Status SendDatagram(int socket, const std::vector<uint8_t>& bytes,
                          const std::vector<UniqueFd>& fds) {
  int numbers[TM_WIRE_MAX_FDS];
  if (fds.size() > TM_WIRE_MAX_FDS) return absl::InternalError("too many descriptors");
  for (size_t i = 0; i < fds.size(); ++i) numbers[i] = fds[i].get();
  const ssize_t sent = proto::SendDatagram(socket, bytes.data(), bytes.size(), numbers,
                                           static_cast<uint32_t>(fds.size()));
  if (sent >= 0) return absl::OkStatus();
  if (WouldBlock()) return absl::UnavailableError("the peer does not read its replies");
  return absl::ErrnoToStatus(errno, "writing to a socket");
}

}  // namespace tidemark::daemon
