#include "daemon/config.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/ascii.h"
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

struct Setting {
  const char* key;
  bool reloadable;
  const char* manual;  // lines of the file's comment
  absl::Status (*read)(absl::string_view text, Config* config);
  std::string (*write)(const Config& config);
};

#define TIDEMARK_TEXT(reader, field)                                         \
  [](absl::string_view text, Config* c) { return reader(text, &c->field); }, \
      [](const Config& c) { return c.field; }

absl::Status ReadText(absl::string_view text, std::string* field) {
  field->assign(text.data(), text.size());
  return absl::OkStatus();
}

const Setting kSettings[] = {
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
       return c.broker.allow_every_uid ? std::string("*") : absl::StrJoin(c.broker.allow_uids, " ");
     }},
    {"max_jobs", true, "Jobs that may be attached at once.",
     [](absl::string_view text, Config* c) {
       return ReadNumber(text, 1, kMostJobs, &c->broker.max_jobs);
     },
     [](const Config& c) { return absl::StrCat(c.broker.max_jobs); }},
};

const Setting* Find(absl::string_view key) {
  for (const Setting& setting : kSettings) {
    if (key == setting.key) return &setting;
  }
  return nullptr;
}

std::string VariableOf(const Setting& setting) {
  return absl::StrCat("TIDEMARKD_", absl::AsciiStrToUpper(setting.key));
}

absl::Status Apply(const Setting& setting, absl::string_view value, absl::string_view where,
                   Config* config) {
  absl::Status status = setting.read(absl::StripAsciiWhitespace(value), config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", status.message()));
}

absl::Status ApplyLine(absl::string_view line, std::set<std::string>* seen, Config* config) {
  line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
  if (line.empty()) return absl::OkStatus();
  const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits('=', 1));
  const std::string key(absl::StripAsciiWhitespace(parts[0]));
  const Setting* setting = Find(key);
  if (setting == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("there is no setting \"", key, "\""));
  }
  if (parts.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(key, " has no \"= value\""));
  }
  if (!seen->insert(key).second) {
    return absl::InvalidArgumentError(absl::StrCat(key, " appears twice"));
  }
  return Apply(*setting, parts[1], key, config);
}

absl::Status ApplyFile(const std::string& path, Config* config) {
  std::ifstream file(path);
  std::stringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    return absl::NotFoundError(absl::StrCat("the configuration file ", path, " cannot be read"));
  }
  absl::Status status = ApplyConfigText(text.str(), config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(path, " ", status.message()));
}

absl::Status ParseArgument(const std::vector<std::string>& arguments, size_t* at,
                           CommandLine* line) {
  const std::string& argument = arguments[*at];
  if (argument == "--help") return line->action = CommandLine::Action::kHelp, absl::OkStatus();
  if (argument == "--version")
    return line->action = CommandLine::Action::kVersion, absl::OkStatus();
  if (argument == "--check-config") {
    return line->action = CommandLine::Action::kCheck, absl::OkStatus();
  }
  if (argument == "--print-config") {
    return line->action = CommandLine::Action::kPrint, absl::OkStatus();
  }
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const std::string key = name.rfind("--", 0) == 0 ? name.substr(2) : "";
  if (key != "config" && Find(key) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no flag \"", name, "\"; tidemarkd --help lists them"));
  }
  if (equals == std::string::npos && *at + 1 >= arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " needs a value"));
  }
  const std::string value =
      equals == std::string::npos ? arguments[++*at] : argument.substr(equals + 1);
  if (key == "config") {
    line->config_file = value;
  } else if (!line->flags.emplace(key, value).second) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is given twice"));
  }
  return absl::OkStatus();
}

}  // namespace

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  };
}

Config DefaultConfig(bool for_root, const Environment& environment) {
  Config config;
  std::string runtime = "/run/tidemark";
  config.state_dir = "/var/lib/tidemark";
  if (!for_root) {
    const std::string home = environment("HOME").value_or("/tmp");
    runtime = absl::StrCat(
        environment("XDG_RUNTIME_DIR").value_or(absl::StrCat("/tmp/tidemark-", getuid())),
        "/tidemark");
    config.state_dir = absl::StrCat(
        environment("XDG_STATE_HOME").value_or(absl::StrCat(home, "/.local/state")), "/tidemark");
  }
  config.socket = runtime + "/tidemarkd.sock";
  config.admin.listen = absl::StrCat("unix:", runtime, "/admin.sock");
  config.metrics_listen = "127.0.0.1:9877";
  return config;
}

absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             const Environment& environment) {
  CommandLine line;
  line.config_file = environment("TIDEMARKD_CONFIG").value_or("");
  for (size_t at = 0; at < arguments.size(); ++at) {
    if (absl::Status status = ParseArgument(arguments, &at, &line); !status.ok()) return status;
  }
  return line;
}

absl::Status ApplyConfigText(absl::string_view text, Config* config) {
  std::set<std::string> seen;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::Status status = ApplyLine(line, &seen, config); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("line ", number, ": ", status.message()));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Config> LoadConfig(const CommandLine& line, bool for_root,
                                  const Environment& environment) {
  Config config = DefaultConfig(for_root, environment);
  if (!line.config_file.empty()) {
    if (absl::Status status = ApplyFile(line.config_file, &config); !status.ok()) return status;
  }
  for (const Setting& setting : kSettings) {
    const std::string variable = VariableOf(setting);
    if (const std::optional<std::string> value = environment(variable)) {
      if (absl::Status status = Apply(setting, *value, variable, &config); !status.ok()) {
        return status;
      }
    }
    const auto flag = line.flags.find(setting.key);
    if (flag == line.flags.end()) continue;
    absl::Status status = Apply(setting, flag->second, absl::StrCat("--", setting.key), &config);
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckAdminOptions(config.admin); !status.ok()) return status;
  return config;
}

std::vector<std::string> NeedRestart(const Config& running, const Config& loaded) {
  std::vector<std::string> keys;
  for (const Setting& setting : kSettings) {
    if (!setting.reloadable && setting.write(running) != setting.write(loaded)) {
      keys.push_back(setting.key);
    }
  }
  return keys;
}

std::string ConfigText(const Config& config, const Config& defaults) {
  std::string text =
      "# Settings of tidemarkd, the daemon of Tidemark. Each key is also a flag (--key VALUE) and "
      "a\n"
      "# variable (TIDEMARKD_KEY); a flag wins over a variable, a variable over this file. A line "
      "that\n"
      "# starts with # states the default. Byte counts accept KiB, MiB, GiB and TiB.\n"
      "# Check a file with: tidemarkd --config FILE --check-config\n";
  for (const Setting& setting : kSettings) {
    absl::StrAppend(&text, "\n");
    for (absl::string_view line : absl::StrSplit(setting.manual, '\n')) {
      absl::StrAppend(&text, "# ", line, "\n");
    }
    absl::StrAppend(&text,
                    setting.reloadable ? "# Reloaded by SIGHUP.\n" : "# Changed by a restart.\n");
    const std::string value = setting.write(config);
    const bool changed = value != setting.write(defaults);
    std::string assignment = absl::StrCat(changed ? "" : "#", setting.key, " = ", value);
    absl::StripTrailingAsciiWhitespace(&assignment);
    absl::StrAppend(&text, assignment, "\n");
  }
  return text;
}

std::string HelpText(const Config& defaults) {
  std::string text =
      "tidemarkd: the per-node daemon of Tidemark; owns the memory of the node's GPUs and leases "
      "it to\n"
      "jobs that run under `tidemark run`.\n\n"
      "Usage: tidemarkd [--config FILE] [--KEY VALUE ...]\n"
      "       tidemarkd --check-config | --print-config | --help | --version\n\n"
      "  --config FILE    read settings from FILE first (or TIDEMARKD_CONFIG)\n"
      "  --check-config   say whether the settings are accepted, and exit\n"
      "  --print-config   print the settings in force as a configuration file, and exit\n\n"
      "Signals: SIGHUP reloads the settings that may change; SIGTERM ends the daemon, jobs run "
      "on.\n"
      "Exit status: 0 after SIGTERM, 1 when it cannot serve, 2 for settings that are not "
      "accepted.\n\n"
      "Settings, each also a variable TIDEMARKD_KEY:\n";
  for (const Setting& setting : kSettings) {
    const std::string value = setting.write(defaults);
    absl::StrAppend(&text, "\n  --", setting.key, "   (default: ", value.empty() ? "none" : value,
                    ")\n");
    for (absl::string_view line : absl::StrSplit(setting.manual, '\n')) {
      absl::StrAppend(&text, "      ", line, "\n");
    }
  }
  return text;
}

}  // namespace tidemark::daemon
