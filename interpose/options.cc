// Parsing of the environment; see options.h. No allocation, no stdio: it runs inside the job's
// first CUDA call, wherever that is.

#include "interpose/options.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "core/units.h"
#include "interpose/log.h"

namespace tidemark::interpose {
namespace {

bool Parse(const char* text, OptionFlag* flag) {
  if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) return false;
  *flag = text[0] == '1';
  return true;
}

bool Parse(const char* text, OptionSize* size) { return *text == '\0' || ParseSize(text, size); }

bool Parse(const char* text, OptionText* value) {
  *value = text;
  return true;
}

const char* Accepted(const OptionFlag&) { return "0 or 1"; }
const char* Accepted(const OptionSize&) {
  return "a number of bytes above 0, with KiB, MiB, GiB or TiB, or a share up to 100%";
}
const char* Accepted(const OptionText&) { return "any text"; }

template <typename Value>
bool ParseOne(const char* variable, const char* given, const char* fallback, Value* value,
              char* why, size_t why_bytes) {
  if (Parse(given != nullptr ? given : fallback, value)) return true;
  Format(why, why_bytes, "%s=%s is not understood (accepted: %s)", variable, given,
         Accepted(*value));
  return false;
}

const char* FromEnvironment(const char* variable) { return getenv(variable); }

void Load(Options* options) {
  char why[512];
  if (ParseOptions(&FromEnvironment, options, why, sizeof(why))) return;
  options->disable = true;
  Warn("%s; Tidemark is off in this process and the job runs without it", why);
}

}  // namespace

uint64_t OptionSize::Of(uint64_t whole_bytes) const {
  if (!given) return whole_bytes;
  if (share == 0) return bytes;
  return static_cast<uint64_t>(share * static_cast<double>(whole_bytes) + 0.5);
}

bool ParseSize(const char* text, OptionSize* size) {
  // Large enough that the share read back from it is exact to nine digits.
  constexpr uint64_t kWhole = uint64_t{1} << 50;
  core::Bytes bytes = 0;
  const bool absolute = core::ParseBytes(text, 0, &bytes);
  if (!absolute && !core::ParseBytes(text, kWhole, &bytes)) return false;
  if (bytes == 0) return false;
  *size = OptionSize();
  size->given = true;
  if (absolute) {
    size->bytes = bytes;
  } else {
    size->share = static_cast<double>(bytes) / static_cast<double>(kWhole);
  }
  return true;
}

bool ParseOptions(const char* (*lookup)(const char*), Options* options, char* why,
                  size_t why_bytes) {
#define TIDEMARK_OPTION(kind, field, variable, fallback, meaning)                         \
  if (!ParseOne<Option##kind>(variable, lookup(variable), fallback, &options->field, why, \
                              why_bytes)) {                                               \
    return false;                                                                         \
  }
#include "interpose/options.def"
#undef TIDEMARK_OPTION
  return true;
}

const Options& GetOptions() {
  // Not call_once: its implementation may wait for a thread that is itself inside a CUDA call.
  enum { kUnread, kReading, kRead };
  static std::atomic<int> state{kUnread};
  static Options options;
  int expected = kUnread;
  if (state.load(std::memory_order_acquire) == kRead) return options;
  if (state.compare_exchange_strong(expected, kReading)) {
    Load(&options);
    state.store(kRead, std::memory_order_release);
  }
  while (state.load(std::memory_order_acquire) != kRead) sched_yield();
  return options;
}

}  // namespace tidemark::interpose
