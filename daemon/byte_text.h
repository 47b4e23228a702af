// Byte counts as people write them ("4GiB", "512 MiB", "1048576") and as we print them. What is
// read is what core/units.h reads, so that a policy file, the CLI and the job's environment agree;
// what is printed has binary units only.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_BYTE_TEXT_H_
#define TIDEMARK_DAEMON_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tidemark::daemon {

// As core::ParseBytes, without shares, white space around it allowed. InvalidArgument names the
// text.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

// The shortest exact form that ParseBytes reads back: "4GiB", "1536MiB", "17".
std::string ExactBytes(uint64_t bytes);

// For sentences: "1.50 GiB", "17 bytes".
std::string ReadableBytes(uint64_t bytes);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_BYTE_TEXT_H_
