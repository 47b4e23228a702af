// Binding, permissions and the accept loop of the admin service's Unix socket.

#include "daemon/admin_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tidemark::daemon {
namespace {

constexpr int kBacklog = 64;

absl::Status Errno(absl::string_view tried) { return absl::ErrnoToStatus(errno, tried); }

absl::StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("The admin socket path \"", path, "\" has ",
                                                   path.size(), " characters; accepted: at most ",
                                                   sizeof(address.sun_path) - 1));
  }
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

bool SomebodyAccepts(const sockaddr_un& address) {
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  const bool connected =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(probe);
  return connected;
}

// Removes a socket that a dead daemon left behind; never another kind of file.
absl::Status ClearStale(const std::string& path, const sockaddr_un& address) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return absl::OkStatus();
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(absl::StrCat("The admin socket path \"", path,
                                                 "\" is a file that is not a socket; move it "
                                                 "away or choose another path"));
  }
  if (SomebodyAccepts(address)) {
    return absl::AlreadyExistsError(absl::StrCat("Another process serves the admin socket \"", path,
                                                 "\"; stop it or choose another path"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Errno(absl::StrCat("Cannot remove the stale admin socket ", path));
  }
  return absl::OkStatus();
}

absl::Status GiveToGroup(const std::string& path, const std::string& group) {
  if (group.empty()) return absl::OkStatus();
  const struct group* entry = getgrnam(group.c_str());
  if (entry == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The admin group \"", group, "\" does not exist; accepted: a group of this host"));
  }
  if (chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0) {
    return Errno(absl::StrCat("Cannot give the admin socket ", path, " to group ", group));
  }
  if (chmod(path.c_str(), 0660) != 0) {
    return Errno(absl::StrCat("Cannot set mode 0660 on the admin socket ", path));
  }
  return absl::OkStatus();
}

// bind() creates the file with the permissions of the socket's inode, so they are right from the
// start without touching the umask of a process that has other threads.
absl::Status BindPrivately(int listener, const std::string& path, const sockaddr_un& address) {
  if (fchmod(listener, 0600) != 0) return Errno("Cannot set mode 0600 on the admin socket");
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Errno(absl::StrCat("Cannot bind the admin socket ", path));
  }
  return absl::OkStatus();
}

// Listens, and returns the eventfd that ends that. After a failure no file is left at `path`.
absl::StatusOr<int> Open(int listener, const std::string& path, const sockaddr_un& address,
                         const std::string& group) {
  if (absl::Status status = BindPrivately(listener, path, address); !status.ok()) return status;
  absl::Status status = GiveToGroup(path, group);
  if (status.ok() && listen(listener, kBacklog) != 0) {
    status = Errno("Cannot listen on the admin socket");
  }
  const int wake = status.ok() ? eventfd(0, EFD_CLOEXEC) : -1;
  if (status.ok() && wake < 0) status = Errno("Cannot create an eventfd for the admin socket");
  if (status.ok()) return wake;
  unlink(path.c_str());
  return status;
}

uint64_t InodeOf(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdminSocket>> AdminSocket::Listen(
    const std::string& path, const std::string& group, std::function<void(int)> accepted) {
  const absl::StatusOr<sockaddr_un> address = AddressOf(path);
  if (!address.ok()) return address.status();
  if (absl::Status status = ClearStale(path, *address); !status.ok()) return status;

  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return Errno("Cannot create the admin socket");
  const absl::StatusOr<int> wake = Open(listener, path, *address, group);
  if (!wake.ok()) {
    close(listener);
    return wake.status();
  }
  return std::unique_ptr<AdminSocket>(new AdminSocket(path, listener, *wake, std::move(accepted)));
}

AdminSocket::AdminSocket(std::string path, int listener, int wake,
                         std::function<void(int)> accepted)
    : path_(std::move(path)),
      listener_(listener),
      wake_(wake),
      inode_(InodeOf(path_)),
      accepted_(std::move(accepted)),
      thread_([this] { AcceptLoop(); }) {}

AdminSocket::~AdminSocket() {
  const uint64_t one = 1;
  // An eventfd write of 1 fails only when the counter is about to overflow, which two writes cannot
  // do.
  if (write(wake_, &one, sizeof(one)) == sizeof(one)) thread_.join();
  close(listener_);
  close(wake_);
  if (InodeOf(path_) == inode_) unlink(path_.c_str());
}

void AdminSocket::AcceptLoop() {
  for (;;) {
    pollfd watched[2] = {{listener_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(watched, 2, -1) < 0 && errno != EINTR) return;
    if (watched[1].revents != 0) return;
    if (watched[0].revents != 0) AcceptOne();
  }
}

void AdminSocket::AcceptOne() {
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    // Out of descriptors: the connection stays queued, so wait instead of spinning on it.
    if (errno == EMFILE || errno == ENFILE) poll(nullptr, 0, 50);
    return;
  }
  ucred peer = {};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    close(fd);
    return;
  }
  {
    absl::MutexLock lock(&mutex_);
    peers_[fd] = absl::StrCat("uid ", peer.uid, " pid ", peer.pid);
  }
  accepted_(fd);
}

std::string AdminSocket::PeerOf(int fd) const {
  absl::MutexLock lock(&mutex_);
  const auto found = peers_.find(fd);
  return found == peers_.end() ? std::string() : found->second;
}

}  // namespace tidemark::daemon
