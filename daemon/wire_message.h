// Strict reading of what a job sends, and the making of replies. Every field that a job controls is
// checked here or named as unchecked; nothing after this file trusts a count, a size or a string.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_WIRE_MESSAGE_H_
#define TIDEMARK_DAEMON_WIRE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/unique_fd.h"
#include "proto/wire.h"

namespace tidemark::daemon {

// The largest datagram either side sends.
inline constexpr size_t kMaxDatagramBytes = sizeof(tm_wire_chunks);

struct Request {
  tm_wire_header header = {};
  // RETURN and ADOPT are told apart by header.type; PING has no body.
  std::variant<std::monostate, tm_wire_hello, tm_wire_lease, tm_wire_chunks, tm_wire_share> body;
};

enum class Verdict {
  kServe,   // well formed: device indices and chunk ids still have to exist
  kRefuse,  // framing is right, a field is not: answer `outcome` and `reason`, go on
  kDrop,    // not our protocol: close the connection
};

struct Reading {
  Verdict verdict = Verdict::kDrop;
  Request request;
  tm_wire_outcome outcome = TM_WIRE_OK;  // with kRefuse
  std::string reason;                    // with kRefuse and kDrop
};

Reading ReadRequest(const uint8_t* bytes, size_t size);

struct Reply {
  std::vector<uint8_t> bytes;
  std::vector<UniqueFd> fds;
  std::string close_reason;  // not empty: close the connection after this reply
};

tm_wire_header ReplyHeader(tm_wire_type type, size_t size, const tm_wire_header& request);
void SetReason(char (&field)[TM_WIRE_REASON_BYTES], absl::string_view reason);

// The reply of the right type that carries only an outcome.
Reply OutcomeReply(const tm_wire_header& request, tm_wire_outcome outcome, absl::string_view reason,
                   uint32_t count = 0);
Reply LeasedReply(const tm_wire_header& request, const std::vector<uint64_t>& chunks,
                  std::vector<UniqueFd> fds);

template <typename Message>
std::vector<uint8_t> BytesOf(const Message& message) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&message);
  return std::vector<uint8_t>(bytes, bytes + sizeof(message));
}

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_WIRE_MESSAGE_H_
