// Parsing of the environment; see options.h. No allocation, no stdio: it runs inside the job's
// first CUDA call, wherever that is.

#include "interpose/options.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "interpose/log.h"

namespace tidemark::interpose {
namespace {

struct Unit {
  const char* name;
  unsigned shift;
};
constexpr Unit kUnits[] = {{"", 0}, {"B", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};

// Digits at `*text`; moves past them. False when there are none or the number does not fit.
bool ParseNumber(const char** text, uint64_t* value) {
  const char* at = *text;
  uint64_t number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) {
    uint64_t digit = static_cast<uint64_t>(*at - '0');
    if (__builtin_mul_overflow(number, uint64_t{10}, &number) ||
        __builtin_add_overflow(number, digit, &number)) {
      return false;
    }
  }
  if (at == *text) return false;
  *text = at;
  *value = number;
  return true;
}

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
  return "a number of bytes with KiB, MiB, GiB or TiB, or 1% to 100%";
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
  if (percent == 0) return bytes;
  return whole_bytes / 100 * percent + whole_bytes % 100 * percent / 100;
}

bool ParseSize(const char* text, OptionSize* size) {
  uint64_t number = 0;
  if (!ParseNumber(&text, &number)) return false;
  OptionSize parsed;
  parsed.given = true;
  if (strcmp(text, "%") == 0) {
    if (number < 1 || number > 100) return false;
    parsed.percent = static_cast<uint32_t>(number);
    *size = parsed;
    return true;
  }
  for (const Unit& unit : kUnits) {
    if (strcmp(text, unit.name) != 0) continue;
    parsed.bytes = number << unit.shift;
    if (number == 0 || parsed.bytes >> unit.shift != number) return false;
    *size = parsed;
    return true;
  }
  return false;
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
