// Byte counts as people write them ("4GiB", "512 MiB", "1048576") and as we print them. Binary
// units only: a "GB" of 10^9 next to a "GiB" is how budgets go wrong.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_BYTE_TEXT_H_
#define TIDEMARK_DAEMON_BYTE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tidemark::daemon {

// Accepts a whole number with an optional unit of KiB, MiB, GiB, TiB. InvalidArgument names the
// text.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);

// The shortest exact form that ParseBytes reads back: "4GiB", "1536MiB", "17".
std::string ExactBytes(uint64_t bytes);

// For sentences: "1.50 GiB", "17 bytes".
std::string ReadableBytes(uint64_t bytes);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_BYTE_TEXT_H_
