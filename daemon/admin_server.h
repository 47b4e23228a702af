// The gRPC service tidemark.v1.Admin over a Node: what operators and the `tidemark` CLI talk to. It
// translates and validates; every decision is the Node's.
//
// A Unix socket is guarded by file permissions and knows its caller's uid and pid, which the audit
// log names. TCP is served under mutual TLS or not at all.
//
// Thread rule: Start and Stop from one thread; the service answers on gRPC's own threads.

#ifndef TIDEMARK_DAEMON_ADMIN_SERVER_H_
#define TIDEMARK_DAEMON_ADMIN_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/node.h"

namespace tidemark::daemon {

struct AdminOptions {
  // "unix:/run/tidemark/admin.sock" (or the bare path), or "tcp:HOST:PORT".
  std::string listen = "unix:/run/tidemark/admin.sock";
  std::string group;  // may use the Unix socket (mode 0660); empty: its owner alone (0600)
  // PEM files, all three needed for TCP and refused otherwise.
  std::string tls_certificate;
  std::string tls_key;
  std::string tls_client_ca;  // who may connect: certificates signed by it
};

// One sentence about what is wrong with `options`, or Ok. Touches no socket; reads no file. Used by
// `tidemarkd --check-config`.
absl::Status CheckAdminOptions(const AdminOptions& options);

class AdminServer {
 public:
  // Serves when it returns. `node` outlives the server. A stale Unix socket (nobody accepts on it)
  // is replaced; a live one is an error. The socket's folder must exist.
  static absl::StatusOr<std::unique_ptr<AdminServer>> Start(const AdminOptions& options,
                                                            Node& node);

  virtual ~AdminServer() = default;  // stops
  // Ends event streams cleanly, lets running calls finish within a second, removes the socket.
  virtual void Stop() = 0;
  // What a client dials: "unix:/run/tidemark/admin.sock", "HOST:PORT" with the port really bound.
  virtual std::string address() const = 0;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ADMIN_SERVER_H_
