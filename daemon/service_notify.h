// Tells systemd how the service is, through $NOTIFY_SOCKET; without one, does nothing.
//
// Threads: any.

#ifndef TIDEMARK_DAEMON_SERVICE_NOTIFY_H_
#define TIDEMARK_DAEMON_SERVICE_NOTIFY_H_

#include <string>

namespace tidemark::daemon {

// `state` as sd_notify(3) has it: "READY=1", "STOPPING=1", "STATUS=...". False when it was not
// sent.
bool NotifyService(const std::string& state);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_SERVICE_NOTIFY_H_
