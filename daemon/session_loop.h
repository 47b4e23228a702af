// The jobs' door: one Unix socket, one loop, one session per connection. Reads datagrams, has the
// broker answer, and tells it when a connection ends. Trusts no peer: credentials come from the
// kernel, unexpected descriptors are closed, a silent or stuffed connection is dropped.
//
// Threads: Open and Run from one thread; Stop and Reload-requests from any thread or signal
// handler.

#ifndef TIDEMARK_DAEMON_SESSION_LOOP_H_
#define TIDEMARK_DAEMON_SESSION_LOOP_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/broker.h"
#include "daemon/unique_fd.h"

namespace tidemark::daemon {

// InvalidArgument when a Unix socket cannot have this path.
absl::Status CheckSocketPath(const std::string& path);

class SessionLoop {
 public:
  // Binds `path`. FailedPrecondition when another daemon serves it; InvalidArgument when it is too
  // long. A socket file that a dead daemon left is replaced.
  static absl::StatusOr<std::unique_ptr<SessionLoop>> Open(const std::string& path, Broker* broker);
  ~SessionLoop();  // removes the socket

  // Serves until Stop. `on_wake` runs on this thread after each Wake.
  void Run(const std::function<void()>& on_wake);
  void Stop();  // async-signal-safe
  void Wake();  // async-signal-safe

 private:
  struct Session {
    UniqueFd fd;
    UniqueFd process;  // readable when the peer's process is gone
    Peer peer;
    Attachment attachment;
    absl::Time accepted;
  };

  SessionLoop(std::string path, Broker* broker);
  absl::Status Bind();
  void Accept();
  void Admit(UniqueFd fd);
  void TurnAway();
  bool MayConnect(uid_t uid) const;
  void Serve(int fd);
  // One datagram. Returns why the connection must close, empty to go on.
  std::string ServeOne(Session* session);
  std::string Answer(Session* session, const uint8_t* bytes, size_t size);
  void Close(int fd, const std::string& why);
  void CloseSilent();

  const std::string path_;
  Broker* const broker_;
  UniqueFd lock_;
  UniqueFd listener_;
  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd spare_;  // given up for a moment when descriptors run out
  std::map<int, Session> sessions_;
  std::map<int, int> process_of_;  // process descriptor to session
  bool bound_ = false;
  std::atomic<bool> stop_ = false;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_SESSION_LOOP_H_
