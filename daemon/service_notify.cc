#include "daemon/service_notify.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdlib>
#include <cstring>

#include "daemon/unique_fd.h"

namespace tidemark::daemon {

bool NotifyService(const std::string& state) {
  const char* path = std::getenv("NOTIFY_SOCKET");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t length = path == nullptr ? 0 : std::strlen(path);
  if (length < 2 || length >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path, length);
  if (address.sun_path[0] == '@') address.sun_path[0] = 0;  // abstract namespace
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length);
  return fd.valid() &&
         sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL,
                reinterpret_cast<sockaddr*>(&address), size) == static_cast<ssize_t>(state.size());
}

}  // namespace tidemark::daemon
