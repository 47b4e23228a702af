// One datagram with descriptors over a Unix SOCK_SEQPACKET socket.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_DATAGRAM_H_
#define TIDEMARK_DAEMON_DATAGRAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/unique_fd.h"

namespace tidemark::daemon {

struct Datagram {
  size_t size = 0;            // 0: the peer closed
  bool truncated = false;     // it was larger than the buffer, or brought too many descriptors
  std::vector<UniqueFd> fds;  // closed when dropped
};

// Unavailable when nothing is there (or a receive time-out passed).
absl::StatusOr<Datagram> ReceiveDatagram(int socket, uint8_t* buffer, size_t size);

// Unavailable when the peer does not read; never raises SIGPIPE.
absl::Status SendDatagram(int socket, const std::vector<uint8_t>& bytes,
                          const std::vector<UniqueFd>& fds);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_DATAGRAM_H_
