// CHECK for broken invariants. The daemon dies with one sentence: its restart rebuilds the state
// from the jobs, which is safer than going on with wrong accounts. Not for bad input, which is a
// Status.
//
// Threads: any.

#ifndef TIDEMARK_DAEMON_CHECK_H_
#define TIDEMARK_DAEMON_CHECK_H_

#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"

namespace tidemark::daemon {

[[noreturn]] inline void Die(const char* file, int line, const char* what) {
  std::fprintf(stderr, "tidemarkd: broken invariant at %s:%d: %s\n", file, line, what);
  std::abort();
}

inline void CheckOk(const absl::Status& status, const char* file, int line) {
  if (!status.ok()) Die(file, line, status.ToString().c_str());
}

}  // namespace tidemark::daemon

#define TIDEMARK_CHECK(claim)                                          \
  do {                                                                 \
    if (!(claim)) ::tidemark::daemon::Die(__FILE__, __LINE__, #claim); \
  } while (false)
#define TIDEMARK_CHECK_OK(status) ::tidemark::daemon::CheckOk((status), __FILE__, __LINE__)

#endif  // TIDEMARK_DAEMON_CHECK_H_
