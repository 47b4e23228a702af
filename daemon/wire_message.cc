#include "daemon/wire_message.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace tidemark::daemon {
namespace {

size_t SizeOf(uint16_t type) {
  switch (type) {
    case TM_WIRE_HELLO:
      return sizeof(tm_wire_hello);
    case TM_WIRE_LEASE:
      return sizeof(tm_wire_lease);
    case TM_WIRE_RETURN:
    case TM_WIRE_ADOPT:
      return sizeof(tm_wire_chunks);
    case TM_WIRE_SHARE:
    case TM_WIRE_OPEN_SHARE:
      return sizeof(tm_wire_share);
    case TM_WIRE_PING:
      return sizeof(tm_wire_header);
    default:
      return 0;
  }
}

// Empty when `value` is within [low, high], else the sentence for the job.
std::string OutOfRange(const char* field, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return "";
  return absl::StrCat(field, " ", value, " is out of range: ", low, " to ", high);
}

std::string FirstOf(std::initializer_list<std::string> sentences) {
  for (const std::string& sentence : sentences) {
    if (!sentence.empty()) return sentence;
  }
  return "";
}

std::string Check(const tm_wire_hello& hello) {
  const size_t length = strnlen(hello.job_name, sizeof(hello.job_name));
  if (length == 0 || length == sizeof(hello.job_name)) {
    return absl::StrCat("job_name must have 1 to ", sizeof(hello.job_name) - 1,
                        " bytes and end with a zero");
  }
  return OutOfRange("device_count", hello.device_count, 1, TM_WIRE_MAX_DEVICES);
}

std::string CheckSlot(uint32_t device, uint32_t place) {
  return FirstOf({OutOfRange("device", device, 0, TM_WIRE_MAX_DEVICES - 1),
                  OutOfRange("place", place, TM_WIRE_DEVICE, TM_WIRE_HOST)});
}

std::string Check(const tm_wire_lease& lease) {
  return FirstOf({CheckSlot(lease.device, lease.place),
                  OutOfRange("count", lease.count, 1, TM_WIRE_MAX_FDS),
                  OutOfRange("at_least", lease.at_least, 1, lease.count)});
}

std::string CheckDistinct(const uint64_t* ids, uint32_t count) {
  std::vector<uint64_t> sorted(ids, ids + count);
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  return twice == sorted.end() ? "" : absl::StrCat("chunk_id ", *twice, " appears twice");
}

std::string Check(const tm_wire_chunks& chunks) {
  // An ADOPT without chunks is how a job that holds none says "last".
  const uint64_t least = chunks.header.type == TM_WIRE_ADOPT && chunks.last == 1 ? 0 : 1;
  std::string fault = FirstOf({CheckSlot(chunks.device, chunks.place),
                               OutOfRange("count", chunks.count, least, TM_WIRE_MAX_CHUNKS),
                               OutOfRange("last", chunks.last, 0, 1)});
  return fault.empty() ? CheckDistinct(chunks.chunk_id, chunks.count) : fault;
}

std::string Check(const tm_wire_share& share) {
  constexpr uint64_t kMostChunks = uint64_t{1} << 20;
  const bool blank = std::all_of(std::begin(share.token), std::end(share.token),
                                 [](uint8_t byte) { return byte == 0; });
  if (blank) return "token is all zero";
  std::string fault = FirstOf({OutOfRange("count", share.count, 1, TM_WIRE_MAX_FDS),
                               OutOfRange("first", share.first, 0, kMostChunks)});
  if (!fault.empty() || share.header.type == TM_WIRE_OPEN_SHARE) return fault;
  fault = FirstOf({OutOfRange("device", share.device, 0, TM_WIRE_MAX_DEVICES - 1),
                   OutOfRange("total", share.total, share.first + share.count, kMostChunks)});
  return fault.empty() ? CheckDistinct(share.chunk_id, share.count) : fault;
}

// A job is not turned away for its program's name: what is not printable ASCII is shown as '_'.
void MakePrintable(tm_wire_hello* hello) {
  for (char& c : hello->job_name) {
    if (c != 0 && !absl::ascii_isprint(static_cast<unsigned char>(c))) c = '_';
  }
}

template <typename Message>
void ReadBody(const uint8_t* bytes, Reading* reading) {
  Message message;
  std::memcpy(&message, bytes, sizeof(message));
  reading->reason = Check(message);
  if constexpr (std::is_same_v<Message, tm_wire_hello>) MakePrintable(&message);
  reading->request.body = message;
  reading->verdict = reading->reason.empty() ? Verdict::kServe : Verdict::kRefuse;
  if (!reading->reason.empty()) reading->outcome = TM_WIRE_BAD_REQUEST;
}

void ReadByType(const uint8_t* bytes, Reading* reading) {
  switch (reading->request.header.type) {
    case TM_WIRE_HELLO:
      return ReadBody<tm_wire_hello>(bytes, reading);
    case TM_WIRE_LEASE:
      return ReadBody<tm_wire_lease>(bytes, reading);
    case TM_WIRE_RETURN:
    case TM_WIRE_ADOPT:
      return ReadBody<tm_wire_chunks>(bytes, reading);
    case TM_WIRE_SHARE:
    case TM_WIRE_OPEN_SHARE:
      return ReadBody<tm_wire_share>(bytes, reading);
    default:
      reading->verdict = Verdict::kServe;
  }
}

}  // namespace

Reading ReadRequest(const uint8_t* bytes, size_t size) {
  Reading reading;
  tm_wire_header& header = reading.request.header;
  if (size < sizeof(header)) {
    reading.reason = absl::StrCat("a datagram of ", size, " bytes has no header");
    return reading;
  }
  std::memcpy(&header, bytes, sizeof(header));
  if (header.magic != TM_WIRE_MAGIC) {
    reading.reason = "a datagram without Tidemark's magic number";
    return reading;
  }
  if (header.version != TM_WIRE_VERSION) {
    reading.verdict = Verdict::kRefuse;
    reading.outcome = TM_WIRE_BAD_VERSION;
    reading.reason = absl::StrCat("the job speaks wire version ", header.version,
                                  ", the daemon version ", TM_WIRE_VERSION);
    return reading;
  }
  const size_t expected = SizeOf(header.type);
  if (expected == 0) {
    reading.reason = absl::StrCat("a datagram of type ", header.type, ", which jobs do not send");
    return reading;
  }
  if (size != expected || header.size != expected) {
    reading.reason = absl::StrCat("a datagram of type ", header.type, " with ", size,
                                  " bytes that says ", header.size, ", expected ", expected);
    return reading;
  }
  ReadByType(bytes, &reading);
  return reading;
}

tm_wire_header ReplyHeader(tm_wire_type type, size_t size, const tm_wire_header& request) {
  tm_wire_header header = {};
  header.magic = TM_WIRE_MAGIC;
  header.version = TM_WIRE_VERSION;
  header.type = static_cast<uint16_t>(type);
  header.size = static_cast<uint32_t>(size);
  header.sequence = request.sequence;
  return header;
}

void SetReason(char (&field)[TM_WIRE_REASON_BYTES], absl::string_view reason) {
  const size_t length = std::min(reason.size(), sizeof(field) - 1);
  reason.copy(field, length);  // unlike memcpy, takes an empty view without an address
  field[length] = 0;
}

Reply OutcomeReply(const tm_wire_header& request, tm_wire_outcome outcome, absl::string_view reason,
                   uint32_t count) {
  Reply reply;
  if (request.type == TM_WIRE_HELLO) {
    tm_wire_welcome welcome = {};
    welcome.header = ReplyHeader(TM_WIRE_WELCOME, sizeof(welcome), request);
    welcome.outcome = outcome;
    SetReason(welcome.reason, reason);
    reply.bytes = BytesOf(welcome);
  } else if (request.type == TM_WIRE_LEASE || request.type == TM_WIRE_OPEN_SHARE) {
    tm_wire_leased leased = {};
    leased.header = ReplyHeader(TM_WIRE_LEASED, sizeof(leased), request);
    leased.outcome = outcome;
    SetReason(leased.reason, reason);
    reply.bytes = BytesOf(leased);
  } else {
    tm_wire_done done = {};
    done.header = ReplyHeader(TM_WIRE_DONE, sizeof(done), request);
    done.outcome = outcome;
    done.count = count;
    SetReason(done.reason, reason);
    reply.bytes = BytesOf(done);
  }
  return reply;
}

Reply LeasedReply(const tm_wire_header& request, const std::vector<uint64_t>& chunks,
                  std::vector<UniqueFd> fds) {
  tm_wire_leased leased = {};
  leased.header = ReplyHeader(TM_WIRE_LEASED, sizeof(leased), request);
  leased.outcome = TM_WIRE_OK;
  leased.count = static_cast<uint32_t>(chunks.size());
  std::copy(chunks.begin(), chunks.end(), std::begin(leased.chunk_id));
  Reply reply;
  reply.bytes = BytesOf(leased);
  reply.fds = std::move(fds);
  return reply;
}

}  // namespace tidemark::daemon
