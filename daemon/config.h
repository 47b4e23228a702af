// tidemarkd's settings: one table, where each key is also a flag (--key) and a variable
// (TIDEMARKD_KEY). Later ones win: default, file, variable, flag.
//
// The table also writes the configuration file as a manual (deploy/tidemarkd.conf) and --help.
//
// Threads: stateless.

#ifndef TIDEMARK_DAEMON_CONFIG_H_
#define TIDEMARK_DAEMON_CONFIG_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/admin_server.h"
#include "daemon/broker.h"

namespace tidemark::daemon {

struct Config {
  std::string socket;
  std::string state_dir;
  AdminOptions admin;
  std::string metrics_listen;  // empty: off
  std::string libcuda;         // empty: found
  std::string libnvidia_ml;    // empty: found
  uint64_t chunk_bytes = 2 << 20;
  BrokerOptions broker;
};

// Reads environment variables; tests give their own.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;
Environment ProcessEnvironment();

// Where things are when nobody says: under /run and /var/lib for root, else in the user's own
// runtime and state folders.
Config DefaultConfig(uid_t uid, const Environment& environment);

struct CommandLine {
  enum class Action { kServe, kCheck, kPrint, kHelp, kVersion };
  Action action = Action::kServe;
  std::string config_file;                   // --config or TIDEMARKD_CONFIG; empty: none
  std::map<std::string, std::string> flags;  // key to value
};

// InvalidArgument names the argument.
absl::StatusOr<CommandLine> ParseCommandLine(const std::vector<std::string>& arguments,
                                             const Environment& environment);

// Defaults, then the file, then variables, then flags. InvalidArgument names where and which.
absl::StatusOr<Config> LoadConfig(const CommandLine& line, uid_t uid,
                                  const Environment& environment);

// "key = value" lines with # comments; InvalidArgument names the line.
absl::Status ApplyConfigText(absl::string_view text, Config* config);

// Keys that differ and that only a restart can change.
std::vector<std::string> NeedRestart(const Config& running, const Config& loaded);

// The file that describes `config`: each key with its manual; values equal to `defaults` commented
// out.
std::string ConfigText(const Config& config, const Config& defaults);
std::string HelpText(const Config& defaults);

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_CONFIG_H_
