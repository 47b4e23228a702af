// Where this user's tidemarkd is; see sockets.h. Threads: one.

#include "client/cli/sockets.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "proto/address.h"

namespace tidemark::client {
namespace {

std::string FirstThatAnswers(const char* name, int type) {
  const proto::SocketFolders folders(geteuid(), std::getenv("XDG_RUNTIME_DIR"));
  for (int i = 0; i < folders.size(); ++i) {
    std::string path = absl::StrCat(folders[i], name);
    const Door door = Knock(path, type);
    if (door == Door::kOpen || door == Door::kBarred) return path;
  }
  return absl::StrCat(folders[0], name);
}

}  // namespace

Door Knock(const std::string& path, int type) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) return Door::kNobody;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  // A daemon whose queue is full is there; waiting for it is not this function's business.
  const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Door::kNobody;
  Door door = Door::kOpen;
  uid_t peer = 0;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    door = errno == EACCES ? Door::kBarred : errno == EAGAIN ? Door::kOpen : Door::kNobody;
  } else if (!proto::MayServe(fd, path.c_str(), &peer)) {
    door = Door::kForeign;
  }
  close(fd);
  return door;
}

std::string JobSocket() { return FirstThatAnswers(proto::kJobSocket, SOCK_SEQPACKET); }
std::string AdminSocket() { return FirstThatAnswers(proto::kAdminSocket, SOCK_STREAM); }

}  // namespace tidemark::client
