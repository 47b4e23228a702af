// The table of tidemarkd's settings: one row a key. Adding a setting is adding a row (and its field
// in Config); flag, variable, file, manual and help follow from it.
//
// Threads: constant.

#ifndef TIDEMARK_DAEMON_SETTINGS_H_
#define TIDEMARK_DAEMON_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "daemon/config.h"

namespace tidemark::daemon {

struct Setting {
  const char* key;
  bool reloadable;
  const char* manual;  // lines of the file's comment
  absl::Status (*read)(absl::string_view text, Config* config);
  std::string (*write)(const Config& config);
};

// In the order of the manual.
const std::vector<Setting>& Settings();

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_SETTINGS_H_
