// The policy file: a text that people read and edit, one [section] per entry. Parsed strictly: an
// unknown key, a value out of range or a second entry of the same name refuses the whole text.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_POLICY_TEXT_H_
#define TIDEMARK_DAEMON_POLICY_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/node.h"

namespace tidemark::daemon {

std::string FormatPolicy(const Policy& policy);

// Reads what FormatPolicy writes. InvalidArgument names the line.
absl::StatusOr<Policy> ParsePolicy(absl::string_view text);

// One line for the audit log: what `next` changes in `before`.
std::string DescribeChange(const Policy& before, const Policy& next);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_POLICY_TEXT_H_
