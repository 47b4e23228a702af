// Quotas of users, kept in the policy as entries of their own kind: "uid:1000" speaks of user 1000,
// "uid:*" of every user without such an entry. Their device_budget_bytes is what all jobs of the
// user together may hold on each device, their host_budget_bytes likewise of pinned host memory; 0
// sets no bound. No job is governed by them by its name. Pure functions.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_QUOTA_H_
#define TIDEMARK_DAEMON_QUOTA_H_

#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "daemon/node.h"

namespace tidemark::daemon {

inline constexpr uint64_t kNoQuota = UINT64_MAX;

bool IsQuotaName(const std::string& name);
// InvalidArgument when the entry's name has the form and names no user, or when it holds a field
// that says nothing about a user. OK for every other name.
absl::Status ValidateQuota(const PolicyEntry& entry);
// Null when the policy bounds this user by nothing.
const PolicyEntry* QuotaEntry(const Policy& policy, uid_t uid);

// One user in one place, in chunks.
struct Quota {
  uint64_t limit = kNoQuota;
  uint64_t held = 0;  // by all jobs of the user
  uint64_t room() const { return limit > held ? limit - held : 0; }
};

// `bytes` of a quota entry as chunks: 0 means none, and less than a chunk means one.
inline uint64_t QuotaChunks(uint64_t bytes, uint64_t chunk_bytes) {
  return bytes == 0 ? kNoQuota : std::max<uint64_t>(bytes / chunk_bytes, 1);
}

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_QUOTA_H_
