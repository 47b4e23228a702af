#include "daemon/settings.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "daemon/byte_text.h"

namespace tidemark::daemon {
namespace {

constexpr uint64_t kLeastChunkBytes = 2 << 20;
constexpr uint64_t kMostChunkBytes = 32 << 20;
constexpr uint64_t kMostJobs = 4000;
constexpr uint64_t kMostIdleSeconds = 86400;

absl::Status Bad(absl::string_view text, absl::string_view accepted) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not accepted; it takes ", accepted));
}

absl::Status ReadNumber(absl::string_view text, uint64_t low, uint64_t high, uint64_t* number) {
  uint64_t value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < low || value > high) {
    return Bad(text, absl::StrCat("a whole number from ", low, " to ", high));
  }
  *number = value;
  return absl::OkStatus();
}

absl::Status ReadAutoBytes(absl::string_view text, std::optional<uint64_t>* bytes) {
  if (text == "auto") {
    bytes->reset();
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> parsed = ParseBytes(text);
  if (!parsed.ok()) return Bad(text, "auto, or bytes with an optional KiB, MiB, GiB or TiB");
  *bytes = *parsed;
  return absl::OkStatus();
}

std::string WriteAutoBytes(const std::optional<uint64_t>& bytes) {
  return bytes.has_value() ? ExactBytes(*bytes) : "auto";
}

absl::Status ReadPath(absl::string_view text, std::string* path) {
  if (text.empty() || text.front() != '/') return Bad(text, "an absolute path");
  path->assign(text.data(), text.size());
  return absl::OkStatus();
}

absl::Status ReadOptionalPath(absl::string_view text, std::string* path) {
  if (!text.empty()) return ReadPath(text, path);
  path->clear();
  return absl::OkStatus();
}

absl::Status ReadListen(absl::string_view text, std::string* listen) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  const bool complete = colon != absl::string_view::npos && colon > 0 &&
                        absl::SimpleAtoi(text.substr(colon + 1), &port) && port < 65536;
  if (!text.empty() && !complete) return Bad(text, "HOST:PORT, or nothing to switch it off");
  listen->assign(text.data(), text.size());
  return absl::OkStatus();
}

absl::Status ReadUids(absl::string_view text, BrokerOptions* options) {
  std::set<uid_t> uids;
  bool every = false;
  for (absl::string_view word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    uid_t uid = 0;
    if (word == "*") {
      every = true;
    } else if (absl::SimpleAtoi(word, &uid)) {
      uids.insert(uid);
    } else {
      return Bad(text, "user ids separated by spaces, or * for every user");
    }
  }
  options->allow_uids = uids;
  options->allow_every_uid = every;
  return absl::OkStatus();
}

absl::Status ReadChunk(absl::string_view text, uint64_t* bytes) {
  absl::StatusOr<uint64_t> parsed = ParseBytes(text);
  if (!parsed.ok() || *parsed < kLeastChunkBytes || *parsed > kMostChunkBytes ||
      (*parsed & (*parsed - 1)) != 0) {
    return Bad(text, "2MiB, 4MiB, 8MiB, 16MiB or 32MiB");
  }
  *bytes = *parsed;
  return absl::OkStatus();
}

#define TIDEMARK_TEXT(reader, field)                                         \
  [](absl::string_view text, Config* c) { return reader(text, &c->field); }, \
      [](const Config& c) { return c.field; }

absl::Status ReadText(absl::string_view text, std::string* field) {
  field->assign(text.data(), text.size());
  return absl::OkStatus();
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): a flat table.
const std::vector<Setting>& Settings() {
  static const auto* const table = new std::vector<Setting>{
      {"socket", false,
       "Unix socket that jobs attach to. Its path has at most 107 bytes. Every user may\n"
       "connect; allow_uids says who may attach.",
       TIDEMARK_TEXT(ReadPath, socket)},
      {"state_dir", false,
       "Folder of what survives a restart: policy, audit log, and the numbers that are never\n"
       "used twice. One daemon at a time.",
       TIDEMARK_TEXT(ReadPath, state_dir)},
      {"admin_listen", false,
       "Where operators and the tidemark command reach the daemon: unix:PATH, guarded by file\n"
       "permissions, or tcp:HOST:PORT under mutual TLS (the three files below).",
       TIDEMARK_TEXT(ReadText, admin.listen)},
      {"admin_group", false,
       "Group whose members may use the admin socket beside its owner. Empty: the owner alone.",
       TIDEMARK_TEXT(ReadText, admin.group)},
      {"admin_tls_certificate", false, "PEM certificate of the daemon, for admin_listen = tcp:.",
       TIDEMARK_TEXT(ReadOptionalPath, admin.tls_certificate)},
      {"admin_tls_key", false, "PEM private key that belongs to it.",
       TIDEMARK_TEXT(ReadOptionalPath, admin.tls_key)},
      {"admin_tls_client_ca", false,
       "PEM certificate authority that signs the operators' certificates.",
       TIDEMARK_TEXT(ReadOptionalPath, admin.tls_client_ca)},
      {"metrics_listen", false,
       "HOST:PORT of the Prometheus endpoint /metrics. Empty: off. It has no authentication;\n"
       "keep it on a loopback or a trusted network.",
       TIDEMARK_TEXT(ReadListen, metrics_listen)},
      {"libcuda", false,
       "Absolute path of the CUDA driver library. Empty: TIDEMARK_LIBCUDA, else libcuda.so.1\n"
       "where the loader would find it.",
       TIDEMARK_TEXT(ReadOptionalPath, libcuda)},
      {"libnvidia_ml", false,
       "Absolute path of NVIDIA's management library, which tells what other programs use on a\n"
       "device. Empty: libnvidia-ml.so.1 where the loader finds it. Without one that is learned\n"
       "when the driver refuses memory.",
       TIDEMARK_TEXT(ReadOptionalPath, libnvidia_ml)},
      {"chunk_bytes", false,
       "Size of the pieces that memory is handed out in: 2MiB to 32MiB, a power of two.",
       [](absl::string_view text, Config* c) { return ReadChunk(text, &c->chunk_bytes); },
       [](const Config& c) { return ExactBytes(c.chunk_bytes); }},
      {"device_reserve_bytes", true,
       "Kept free on every device, for CUDA contexts and programs that do not run under\n"
       "Tidemark. auto: 1/32 of the device, at most 1GiB.",
       [](absl::string_view text, Config* c) {
         return ReadAutoBytes(text, &c->broker.device_reserve_bytes);
       },
       [](const Config& c) { return WriteAutoBytes(c.broker.device_reserve_bytes); }},
      {"host_budget_bytes", true,
       "Pinned host memory for all jobs together. auto: half of what is available (MemAvailable,\n"
       "cgroup limit) when the daemon starts. Whatever it says, 1/32 of the memory (at most 1GiB)\n"
       "stays available.",
       [](absl::string_view text, Config* c) {
         return ReadAutoBytes(text, &c->broker.host_budget_bytes);
       },
       [](const Config& c) { return WriteAutoBytes(c.broker.host_budget_bytes); }},
      {"pool_idle_seconds", true,
       "Chunks that no job holds go back to the device after this long. Until then the same user\n"
       "gets them without a driver call.",
       [](absl::string_view text, Config* c) {
         uint64_t seconds = 0;
         absl::Status status = ReadNumber(text, 0, kMostIdleSeconds, &seconds);
         if (status.ok()) c->broker.pool_idle = absl::Seconds(static_cast<int64_t>(seconds));
         return status;
       },
       [](const Config& c) { return absl::StrCat(absl::ToInt64Seconds(c.broker.pool_idle)); }},
      {"allow_uids", true,
       "Users whose jobs may attach, beside the daemon's own user and root: user ids separated by\n"
       "spaces, or * for every user.",
       [](absl::string_view text, Config* c) { return ReadUids(text, &c->broker); },
       [](const Config& c) {
         return c.broker.allow_every_uid ? std::string("*")
                                         : absl::StrJoin(c.broker.allow_uids, " ");
       }},
      {"max_jobs", true, "Jobs that may be attached at once.",
       [](absl::string_view text, Config* c) {
         return ReadNumber(text, 1, kMostJobs, &c->broker.max_jobs);
       },
       [](const Config& c) { return absl::StrCat(c.broker.max_jobs); }},
  };
  return *table;
}

}  // namespace tidemark::daemon
