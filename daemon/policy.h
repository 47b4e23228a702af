// Policy as data: which entry serves which job, which changes are accepted, and whether a request
// for chunks is granted. Pure functions; the broker takes the snapshot and carries out the
// decision.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_POLICY_H_
#define TIDEMARK_DAEMON_POLICY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/node.h"
#include "daemon/quota.h"

namespace tidemark::daemon {

inline constexpr char kDefaultEntry[] = "default";
inline constexpr const char* kClassNames[] = {"parameter",  "gradient",  "optimizer",
                                              "activation", "workspace", "unknown"};

const char* LevelName(Level level);
absl::StatusOr<Level> ParseLevel(absl::string_view text);

// Level normal, nothing limited, every class movable.
PolicyEntry DefaultEntry();
// One entry, "default", generation 1.
Policy DefaultPolicy();

// InvalidArgument names field, value and accepted range.
absl::Status ValidateEntry(const PolicyEntry& entry);

// The policy after `change`, one generation on; InvalidArgument and nothing else when it is
// refused.
absl::StatusOr<Policy> Changed(const Policy& policy, const PolicyChange& change);

// The entry with the job's name, else "default"; never a quota (quota.h).
const PolicyEntry& EntryFor(const Policy& policy, const std::string& job_name);

// A request for chunks and all that decides it, in chunks.
struct LeaseQuestion {
  uint64_t count = 0;     // wanted
  uint64_t at_least = 0;  // fewer is of no use
  uint64_t held = 0;      // by this job in this place
  uint64_t budget = 0;    // it may hold now
  uint64_t limit = 0;     // it may ever hold: policy, or what its user asked for
  uint64_t room = 0;      // chunks that nobody holds
  Quota quota;            // of the job's user
  uint64_t chunk_bytes = 1;
  std::string place;  // "device 0", "host memory near device 0"
};

struct LeaseAnswer {
  uint64_t granted = 0;       // 0 or at_least..count
  uint64_t chunks_short = 0;  // when nothing is granted: missing to `at_least`
  bool contended = false;     // others must shrink before this can be granted
  std::string reason;         // why it was refused
};

LeaseAnswer Answer(const LeaseQuestion& question);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_POLICY_H_
