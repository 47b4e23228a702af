#include "tests/daemon/test_client.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>

namespace tidemark::daemon {

TestClient::TestClient(const std::string& path) {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const timeval patience = {10, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    socket_ = std::move(fd);
  }
}

void TestClient::Send(const std::vector<uint8_t>& bytes, const std::vector<UniqueFd>& fds) {
  // A daemon that hung up is seen by the Receive that follows.
  [[maybe_unused]] const bool sent = SendDatagram(socket_.get(), bytes, fds).ok();
}

std::vector<uint8_t> TestClient::Receive() {
  std::vector<uint8_t> buffer(kMaxDatagramBytes);
  absl::StatusOr<Datagram> datagram = ReceiveDatagram(socket_.get(), buffer.data(), buffer.size());
  if (!datagram.ok()) return {};
  fds_ = std::move(datagram->fds);
  buffer.resize(datagram->size);
  return buffer;
}

}  // namespace tidemark::daemon
