// Where tidemarkd listens when nobody says: one rule for the daemon, the command and the jobs, and
// whom a job or the command believes to be tidemarkd.
//
// A daemon of root listens in /run/tidemark, which only root can make. A daemon of another user
// listens in that user's runtime folder. Whoever looks for a daemon tries the user's own first and
// the node's last.
//
// Needs libc alone, allocates nothing. Threads: stateless.

#ifndef TIDEMARK_PROTO_ADDRESS_H_
#define TIDEMARK_PROTO_ADDRESS_H_

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

namespace tidemark::proto {

inline constexpr char kSystemFolder[] = "/run/tidemark";
inline constexpr char kJobSocket[] = "/tidemarkd.sock";
inline constexpr char kAdminSocket[] = "/admin.sock";

inline constexpr size_t kFolderBytes = 92;  // sun_path's 108, less the longer socket's name

// Folders in the order in which they are tried. The first one is where a daemon of this user
// listens.
class SocketFolders {
 public:
  // `runtime_dir` is the value of XDG_RUNTIME_DIR, or null. One that is relative, or too long for a
  // socket, is as good as none. Root's is not looked at: it may be left over from another user.
  SocketFolders(uid_t uid, const char* runtime_dir) {
    if (uid != 0) {
      if (runtime_dir != nullptr && runtime_dir[0] == '/') Add(runtime_dir, nullptr, "/tidemark");
      char digits[12];
      const char* number = Decimal(uid, digits, sizeof(digits));
      Add("/tmp/tidemark-", number, "/tidemark");
      // Where sessions have their runtime folder, for a job that was started outside of one.
      Add("/run/user/", number, "/tidemark");
    }
    Add(kSystemFolder, nullptr, "");
  }

  int size() const { return count_; }
  const char* operator[](int i) const { return path_[i]; }

 private:
  static const char* Decimal(uid_t value, char* text, size_t size) {
    char* at = text + size - 1;
    *at = 0;
    do {
      *--at = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return at;
  }
  void Add(const char* a, const char* b, const char* c) {
    if (b == nullptr) b = "";
    if (strlen(a) + strlen(b) + strlen(c) >= kFolderBytes) return;
    char* path = path_[count_];
    strcpy(path, a);
    strcat(path, b);
    strcat(path, c);
    for (int i = 0; i < count_; ++i) {
      if (strcmp(path_[i], path) == 0) return;
    }
    ++count_;
  }

  char path_[4][kFolderBytes] = {};
  int count_ = 0;
};

// Whether the process that listens behind the connected Unix socket may be believed to be
// tidemarkd: it gets to see the job's memory. Root and the caller's own user are; so is whoever
// root let listen in the system folder.
inline bool MayServe(int socket, const char* path, uid_t* peer) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return false;
  *peer = credentials.uid;
  const size_t length = sizeof(kSystemFolder) - 1;
  const bool system = strncmp(path, kSystemFolder, length) == 0 && path[length] == '/' &&
                      strstr(path, "/..") == nullptr;
  return system || credentials.uid == 0 || credentials.uid == geteuid();
}

}  // namespace tidemark::proto

#endif  // TIDEMARK_PROTO_ADDRESS_H_
