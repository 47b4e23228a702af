// Where this user's tidemarkd is: knocks on the places that proto/address.h names, the user's own
// first. Jobs apply the same rule by themselves. Threads: one.

#ifndef TIDEMARK_CLIENT_CLI_SOCKETS_H_
#define TIDEMARK_CLIENT_CLI_SOCKETS_H_

#include <string>

namespace tidemark::client {

enum class Door {
  kOpen,
  kNobody,   // no socket, or nobody behind it
  kBarred,   // the socket's permissions keep this user out
  kForeign,  // behind it is neither root nor this user, and the place is not the node's
};

// What a connection of `type` (SOCK_SEQPACKET, SOCK_STREAM) to the Unix socket `path` meets.
Door Knock(const std::string& path, int type);

// The socket in the first folder whose door is not kNobody or kForeign; else that of this user's
// own folder.
std::string JobSocket();
std::string AdminSocket();

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_SOCKETS_H_
