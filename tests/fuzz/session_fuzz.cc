// One connection's datagrams as fuzz input: two bytes of length, then the datagram, repeated.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <variant>

#include "daemon/wire_message.h"
#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

void Require(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "session fuzz: %s\n", what);
  std::abort();
}

// A reply fits its request: same sequence, honest size, zero terminated reason, as many fds as
// chunks.
void CheckReply(const Request& request, const Reply& reply) {
  const auto header = MessageIn<tm_wire_header>(reply.bytes);
  Require(header.magic == TM_WIRE_MAGIC && header.size == reply.bytes.size(), "reply frame");
  Require(header.sequence == request.header.sequence, "reply sequence");
  if (header.type == TM_WIRE_LEASED) {
    const auto leased = MessageIn<tm_wire_leased>(reply.bytes);
    Require(leased.count == reply.fds.size(), "descriptors");
    Require(std::memchr(leased.reason, 0, sizeof(leased.reason)) != nullptr, "reason");
  }
}

class Connection {
 public:
  explicit Connection(TestNode* node) : node_(node) {}
  ~Connection() { node_->broker->Detach(attachment_, "the input ended"); }

  // As the session loop does; false when the connection must close.
  bool Take(const uint8_t* bytes, size_t size) {
    const Reading reading = ReadRequest(bytes, size);
    if (reading.verdict == Verdict::kDrop) return Require(!reading.reason.empty(), "why"), false;
    Reply reply;
    if (reading.verdict == Verdict::kRefuse) {
      reply = OutcomeReply(reading.request.header, reading.outcome, reading.reason);
    } else if (attachment_.job != kNobody) {
      reply = node_->broker->Serve(attachment_, reading.request);
    } else if (const auto* hello = std::get_if<tm_wire_hello>(&reading.request.body)) {
      reply = node_->broker->Hello({1, 1000}, reading.request.header, *hello, &attachment_);
    } else {
      return false;
    }
    CheckReply(reading.request, reply);
    return reply.close_reason.empty();
  }

 private:
  TestNode* node_;
  Attachment attachment_;
};

}  // namespace
}  // namespace tidemark::daemon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tidemark::daemon;  // NOLINT: an extern "C" function has no namespace of its own
  static TestNode* node = new TestNode({64 * kChunk, 8 * kChunk});
  {
    Connection connection(node);
    while (size >= 2) {
      const size_t length = std::min<size_t>(data[0] | data[1] << 8, size - 2);
      if (!connection.Take(data + 2, length)) break;
      data += 2 + length;
      size -= 2 + length;
    }
    Require(node->broker->Validate().ok(), "the ledger's walk");
  }
  node->now += absl::Seconds(60);
  node->broker->Tick();
  node->broker->Reap();
  Require(node->driver.Alive(0) == 0 && node->driver.Alive(1) == 0 && node->driver.Alive(-1) == 0,
          "everything returned");
  return 0;
}
