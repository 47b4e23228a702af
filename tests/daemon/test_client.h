// A job's end of the socket, for tests: connects, sends raw datagrams, receives replies.

#ifndef TIDEMARK_TESTS_DAEMON_TEST_CLIENT_H_
#define TIDEMARK_TESTS_DAEMON_TEST_CLIENT_H_

#include <string>
#include <vector>

#include "daemon/datagram.h"
#include "daemon/unique_fd.h"
#include "daemon/wire_message.h"

namespace tidemark::daemon {

class TestClient {
 public:
  explicit TestClient(const std::string& path);

  bool connected() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  void Send(const std::vector<uint8_t>& bytes, const std::vector<UniqueFd>& fds = {});
  // The next reply; empty when the daemon closed the connection or kept silent for ten seconds.
  std::vector<uint8_t> Receive();
  const std::vector<UniqueFd>& fds() const { return fds_; }  // of the last reply
  void Close() { socket_.Reset(); }

  template <typename Answer, typename Message>
  Answer Ask(const Message& message) {
    Send(BytesOf(message));
    Answer answer = {};
    const std::vector<uint8_t> bytes = Receive();
    std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof(answer)),
                reinterpret_cast<uint8_t*>(&answer));
    return answer;
  }

 private:
  UniqueFd socket_;
  std::vector<UniqueFd> fds_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_TEST_CLIENT_H_
