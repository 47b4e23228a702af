// The Unix socket of the admin service: bound by us rather than by gRPC, because gRPC neither sets
// its permissions nor tells who is at the other end. Each accepted connection is handed on with its
// peer's credentials.
//
// Thread rule: one thread of its own accepts and calls `accepted`; PeerOf is safe from any thread.

#ifndef TIDEMARK_DAEMON_ADMIN_SOCKET_H_
#define TIDEMARK_DAEMON_ADMIN_SOCKET_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace tidemark::daemon {

class AdminSocket {
 public:
  // Listens at `path`, mode 0600, or 0660 for `group` when it is not empty. `accepted` takes
  // ownership of each descriptor, which is non-blocking.
  static absl::StatusOr<std::unique_ptr<AdminSocket>> Listen(const std::string& path,
                                                             const std::string& group,
                                                             std::function<void(int fd)> accepted);
  ~AdminSocket();  // stops accepting, removes the socket file if it is still ours
  AdminSocket(const AdminSocket&) = delete;
  AdminSocket& operator=(const AdminSocket&) = delete;

  // "uid 1000 pid 4242" of the connection accepted last as `fd`; empty if there was none.
  std::string PeerOf(int fd) const;

 private:
  AdminSocket(std::string path, int listener, int wake, std::function<void(int)> accepted);
  void AcceptLoop();
  void AcceptOne();

  const std::string path_;
  const int listener_;
  const int wake_;  // eventfd, readable when the thread shall end
  const uint64_t inode_;
  const std::function<void(int)> accepted_;
  mutable absl::Mutex mutex_;
  std::map<int, std::string> peers_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ADMIN_SOCKET_H_
