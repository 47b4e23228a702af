// A SetPolicy request as a PolicyChange: fields that are set replace, the others stay, and every
// value is checked before anything changes. Pure.

#ifndef TIDEMARK_DAEMON_ADMIN_POLICY_H_
#define TIDEMARK_DAEMON_ADMIN_POLICY_H_

#include "absl/status/statusor.h"
#include "daemon/node.h"
#include "proto/tidemark/v1/admin.pb.h"

namespace tidemark::daemon {

// The change that `request` asks of `current`, `actor` left empty. An entry that does not exist yet
// starts from the entry "default". InvalidArgument names field, value and accepted range.
absl::StatusOr<PolicyChange> MergePolicy(const Policy& current,
                                         const v1::SetPolicyRequest& request);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ADMIN_POLICY_H_
