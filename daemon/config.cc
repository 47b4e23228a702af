#include "daemon/config.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/settings.h"
#include "proto/address.h"

namespace tidemark::daemon {
namespace {

const Setting* Find(absl::string_view key) {
  for (const Setting& setting : Settings()) {
    if (key == setting.key) return &setting;
  }
  return nullptr;
}

std::string VariableOf(const Setting& setting) {
  return absl::StrCat("TIDEMARKD_", absl::AsciiStrToUpper(setting.key));
}

// A # starts a comment at the start of a line or after a space: a path may hold one.
absl::string_view WithoutComment(absl::string_view line) {
  for (size_t at = line.find('#'); at != absl::string_view::npos; at = line.find('#', at + 1)) {
    if (at == 0 || absl::ascii_isspace(line[at - 1])) return line.substr(0, at);
  }
  return line;
}

absl::Status Apply(const Setting& setting, absl::string_view value, absl::string_view where,
                   Config* config) {
  value = absl::StripAsciiWhitespace(value);
  if (WithoutComment(value) != value) {
    return absl::InvalidArgumentError(
        absl::StrCat(where, ": \"", value, "\" would read as a comment in a file"));
  }
  absl::Status status = setting.read(value, config);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", status.message()));
}

absl::Status ApplyLine(absl::string_view line, std::set<std::string>* seen, Config* config) {
  line = absl::StripAsciiWhitespace(WithoutComment(line));
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

Config DefaultConfig(uid_t uid, const Environment& environment) {
  Config config;
  const std::string runtime = environment("XDG_RUNTIME_DIR").value_or("");
  const proto::SocketFolders folders(uid, runtime.c_str());
  config.state_dir = "/var/lib/tidemark";
  if (uid != 0) {
    const std::string home = environment("HOME").value_or(absl::StrCat("/tmp/tidemark-", uid));
    config.state_dir = absl::StrCat(
        environment("XDG_STATE_HOME").value_or(absl::StrCat(home, "/.local/state")), "/tidemark");
  }
  config.socket = absl::StrCat(folders[0], proto::kJobSocket);
  config.admin.listen = absl::StrCat("unix:", folders[0], proto::kAdminSocket);
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

absl::StatusOr<Config> LoadConfig(const CommandLine& line, uid_t uid,
                                  const Environment& environment) {
  Config config = DefaultConfig(uid, environment);
  if (!line.config_file.empty()) {
    if (absl::Status status = ApplyFile(line.config_file, &config); !status.ok()) return status;
  }
  for (const Setting& setting : Settings()) {
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
  for (const Setting& setting : Settings()) {
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
  for (const Setting& setting : Settings()) {
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
  for (const Setting& setting : Settings()) {
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
