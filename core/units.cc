// Byte counts as people write them. No locale, no allocation. Threads: no state.

#include "core/units.h"

#include <cmath>

namespace tidemark::core {
namespace {

struct Suffix {
  const char* name;
  double factor;
};

constexpr Suffix kSuffixes[] = {{"", 1},       {"B", 1},        {"K", 0x1p10},   {"KiB", 0x1p10},
                                {"kB", 1e3},   {"KB", 1e3},     {"M", 0x1p20},   {"MiB", 0x1p20},
                                {"MB", 1e6},   {"G", 0x1p30},   {"GiB", 0x1p30}, {"GB", 1e9},
                                {"T", 0x1p40}, {"TiB", 0x1p40}, {"TB", 1e12}};

bool Equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

// Digits with at most one point; returns where they end, or null when there are none.
const char* ReadNumber(const char* text, double* value) {
  double number = 0;
  double scale = 0;  // 0: before the point
  bool any = false;
  for (;; ++text) {
    if (*text >= '0' && *text <= '9') {
      any = true;
      number = scale == 0 ? number * 10 + (*text - '0') : number + (*text - '0') * scale;
      if (scale != 0) scale /= 10;
    } else if (*text == '.' && scale == 0) {
      scale = 0.1;
    } else {
      break;
    }
  }
  *value = number;
  return any ? text : nullptr;
}

}  // namespace

bool ParseBytes(const char* text, Bytes whole, Bytes* bytes) {
  if (text == nullptr) return false;
  double number = 0;
  const char* end = ReadNumber(text, &number);
  if (end == nullptr) return false;
  while (*end == ' ') ++end;
  if (Equal(end, "%")) {
    if (whole == 0 || number > 100) return false;
    *bytes = static_cast<Bytes>(number / 100 * static_cast<double>(whole));
    return true;
  }
  for (const Suffix& suffix : kSuffixes) {
    if (!Equal(end, suffix.name)) continue;
    const double value = number * suffix.factor;
    if (!(value < 0x1p63)) return false;
    *bytes = static_cast<Bytes>(value);
    return true;
  }
  return false;
}

}  // namespace tidemark::core
