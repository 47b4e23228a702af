// Parser of the SIMGPU variable. One table maps each key to its setter; README.md lists the same
// keys. Thread rule: GetConfig parses once, under the initialisation of a static.

#include "simgpu/driver/config.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string_view>

namespace simgpu {
namespace {

struct Unit {
  const char* suffix;
  double factor;
};

constexpr Unit kByteUnits[] = {{"TiB", 1099511627776.0},
                               {"GiB", 1073741824.0},
                               {"MiB", 1048576.0},
                               {"KiB", 1024.0},
                               {"TB", 1e12},
                               {"GB", 1e9},
                               {"MB", 1e6},
                               {"kB", 1e3},
                               {"KB", 1e3},
                               {"B", 1.0},
                               {"", 1.0}};
constexpr Unit kSecondUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}};
constexpr Unit kFlopUnits[] = {{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"", 1.0}};

// A number followed by one of `units`; false when it is not one, negative or not finite.
template <size_t N>
bool ParseQuantity(const std::string& text, const Unit (&units)[N], double* value) {
  errno = 0;
  char* rest = nullptr;
  double number = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || errno == ERANGE || !std::isfinite(number) || number < 0) return false;
  for (const Unit& unit : units) {
    if (std::strcmp(rest, unit.suffix) != 0) continue;
    *value = number * unit.factor;
    return true;
  }
  return false;
}

bool ParseUnsigned(const std::string& text, uint64_t* value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos) return false;
  errno = 0;
  *value = std::strtoull(text.c_str(), nullptr, 10);
  return errno == 0;
}

bool ParseBytes(const std::string& text, uint64_t* bytes) {
  double value = 0;
  if (!ParseQuantity(text, kByteUnits, &value) || value >= 9e18) return false;
  *bytes = static_cast<uint64_t>(value);
  return true;
}

bool ParseRate(const std::string& text, double* rate) {
  if (text.size() < 2 || text.substr(text.size() - 2) != "/s") return false;
  return ParseQuantity(text.substr(0, text.size() - 2), kByteUnits, rate) && *rate > 0;
}

bool ParseBool(const std::string& text, bool* value) {
  if (text != "0" && text != "1") return false;
  *value = text == "1";
  return true;
}

bool SetDevices(const std::string& text, Config* config) {
  uint64_t count = 0;
  if (!ParseUnsigned(text, &count) || count > 16) return false;
  config->devices = static_cast<int>(count);
  return true;
}

bool SetMemory(const std::string& text, Config* config) {
  return ParseBytes(text, &config->memory_bytes) && config->memory_bytes >= (uint64_t{2} << 20);
}

bool SetDuplex(const std::string& text, Config* config) {
  constexpr Unit kNone[] = {{"", 1.0}};
  return ParseQuantity(text, kNone, &config->duplex) && config->duplex > 0 && config->duplex <= 1;
}

bool SetOrder(const std::string& text, Config* config) {
  config->adversarial = text == "adversarial";
  return config->adversarial || text == "eager";
}

bool SetReport(const std::string& text, Config* config) {
  if (text.empty()) return false;
  config->report = text != "0";
  config->report_path = text == "0" || text == "1" ? "" : text;
  return true;
}

bool SetGuard(const std::string& text, Config* config) {
  config->guard = text;
  return text == "auto" || text == "pkey" || text == "mprotect" || text == "off";
}

bool SetDirectory(const std::string& text, Config* config) {
  config->directory = text;
  return !text.empty() && text[0] == '/';
}

bool SetTwins(const std::string& text, Config* config) {
  if (text.empty()) return false;
  size_t start = 0;
  while (start <= text.size()) {
    size_t end = std::min(text.find(':', start), text.size());
    if (end > start) config->twins.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return true;
}

bool SetFault(const std::string& text, Config* config) {
  size_t first = text.find(':');
  size_t second = first == std::string::npos ? first : text.find(':', first + 1);
  if (first == 0 || second == std::string::npos) return false;
  Fault fault;
  uint64_t code = 0;
  fault.function = text.substr(0, first);
  if (!ParseUnsigned(text.substr(first + 1, second - first - 1), &fault.nth) || fault.nth == 0 ||
      !ParseUnsigned(text.substr(second + 1), &code) || code > CUDA_ERROR_UNKNOWN) {
    return false;
  }
  fault.code = static_cast<CUresult>(code);
  config->faults.push_back(fault);
  return fault.function.rfind("cu", 0) == 0;
}

struct Key {
  const char* name;
  const char* accepted;
  bool (*set)(const std::string& text, Config* config);
};

#define SIMGPU_KEY(name, accepted, expression)                                         \
  {                                                                                    \
    name, accepted, [](const std::string& t, Config* c) -> bool { return expression; } \
  }

const Key kKeys[] = {
    {"devices", "a number from 0 to 16", SetDevices},
    {"memory", "bytes, at least 2MiB, such as 8GiB", SetMemory},
    SIMGPU_KEY("h2d", "a rate such as 25GB/s", ParseRate(t, &c->h2d_bytes_per_second)),
    SIMGPU_KEY("d2h", "a rate such as 25GB/s", ParseRate(t, &c->d2h_bytes_per_second)),
    {"duplex", "a factor above 0 and up to 1", SetDuplex},
    SIMGPU_KEY("bandwidth", "a rate such as 1TB/s", ParseRate(t, &c->memory_bytes_per_second)),
    SIMGPU_KEY("flops", "operations per second such as 20T",
               ParseQuantity(t, kFlopUnits, &c->flops) && c->flops > 0),
    SIMGPU_KEY("launch", "a time such as 4us", ParseQuantity(t, kSecondUnits, &c->launch_seconds)),
    {"order", "eager or adversarial", SetOrder},
    SIMGPU_KEY("seed", "a whole number", ParseUnsigned(t, &c->seed)),
    SIMGPU_KEY("race", "0 or 1", ParseBool(t, &c->race)),
    SIMGPU_KEY("verbose", "0 or 1", ParseBool(t, &c->verbose)),
    {"report", "0, 1 or the path of a file", SetReport},
    {"guard", "auto, pkey, mprotect or off", SetGuard},
    {"directory", "an absolute path", SetDirectory},
    {"twins", "paths of shared objects separated by colons", SetTwins},
    SIMGPU_KEY("oom_after", "bytes such as 1GiB, 0 for never",
               ParseBytes(t, &c->out_of_memory_after_bytes)),
    {"fail", "FUNCTION:N:CODE, such as cuMemCreate:3:2", SetFault},
};

std::string KnownKeys() {
  std::string names;
  for (const Key& key : kKeys) names += (names.empty() ? "" : ", ") + std::string(key.name);
  return names;
}

std::string ApplyPair(const std::string& pair, Config* config) {
  size_t equals = pair.find('=');
  std::string name = pair.substr(0, equals);
  std::string value = equals == std::string::npos ? "" : pair.substr(equals + 1);
  for (const Key& key : kKeys) {
    if (name != key.name) continue;
    if (key.set(value, config)) return "";
    return "SIMGPU: key \"" + name + "\" has the value \"" + value +
           "\"; accepted: " + key.accepted;
  }
  return "SIMGPU: there is no key \"" + name + "\"; the keys are " + KnownKeys();
}

struct Parsed {
  Config config;
  std::string error;
};

const Parsed& ParsedOnce() {
  static const Parsed* parsed = [] {
    auto* made = new Parsed;
    if (const char* text = std::getenv("SIMGPU")) made->error = ParseConfig(text, &made->config);
    return made;
  }();
  return *parsed;
}

}  // namespace

std::string ParseConfig(const std::string& text, Config* config) {
  size_t start = 0;
  while (start < text.size()) {
    size_t end = std::min(text.find(',', start), text.size());
    std::string pair = text.substr(start, end - start);
    start = end + 1;
    if (pair.empty()) continue;
    if (std::string error = ApplyPair(pair, config); !error.empty()) return error;
  }
  return "";
}

const Config& GetConfig() { return ParsedOnce().config; }
const std::string& ConfigError() { return ParsedOnce().error; }

}  // namespace simgpu
