// Byte counts as people write them: K, M, G and T alone are binary, too; KB, MB, GB and TB are
// powers of ten. Whole numbers are exact to 64 bits. No locale, no allocation. Threads: no state.

#include "core/units.h"

namespace tidemark::core {
namespace {

struct Suffix {
  const char* name;
  Bytes factor;
};

constexpr Suffix kSuffixes[] = {
    {"", 1},
    {"B", 1},
    {"K", kKiB},
    {"KiB", kKiB},
    {"kB", 1000},
    {"KB", 1000},
    {"M", kMiB},
    {"MiB", kMiB},
    {"MB", 1000000},
    {"G", kGiB},
    {"GiB", kGiB},
    {"GB", 1000000000},
    {"T", 1024 * kGiB},
    {"TiB", 1024 * kGiB},
    {"TB", 1000000000000},
};

bool Equal(const char* a, const char* b) {
  while (*a != 0 && *a == *b) ++a, ++b;
  return *a == *b;
}

struct Number {
  Bytes whole = 0;
  double fraction = 0;  // what stands behind the point, below 1
};

// Digits with at most one point; returns where they end, or null when there are none or too many.
const char* ReadNumber(const char* text, Number* number) {
  double scale = 0.1;  // of the next digit behind the point
  bool any = false;
  bool point = false;
  for (;; ++text) {
    if (*text >= '0' && *text <= '9') {
      const auto digit = static_cast<Bytes>(*text - '0');
      any = true;
      if (point) {
        number->fraction += static_cast<double>(digit) * scale;
        scale /= 10;
      } else if (__builtin_mul_overflow(number->whole, Bytes{10}, &number->whole) ||
                 __builtin_add_overflow(number->whole, digit, &number->whole)) {
        return nullptr;
      }
    } else if (*text == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  return any ? text : nullptr;
}

}  // namespace

bool ParseBytes(const char* text, Bytes whole, Bytes* bytes) {
  if (text == nullptr) return false;
  Number number;
  const char* end = ReadNumber(text, &number);
  if (end == nullptr) return false;
  while (*end == ' ') ++end;
  if (Equal(end, "%")) {
    const double percent = static_cast<double>(number.whole) + number.fraction;
    if (whole == 0 || percent > 100) return false;
    *bytes = static_cast<Bytes>(percent / 100 * static_cast<double>(whole));
    return true;
  }
  for (const Suffix& suffix : kSuffixes) {
    if (!Equal(end, suffix.name)) continue;
    Bytes value = 0;
    const auto rest = static_cast<Bytes>(number.fraction * static_cast<double>(suffix.factor));
    if (__builtin_mul_overflow(number.whole, suffix.factor, &value) ||
        __builtin_add_overflow(value, rest, &value)) {
      return false;
    }
    *bytes = value;
    return true;
  }
  return false;
}

}  // namespace tidemark::core
