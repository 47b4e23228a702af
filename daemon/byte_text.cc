#include "daemon/byte_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/units.h"

namespace tidemark::daemon {
namespace {

struct Unit {
  const char* name;
  unsigned shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  const std::string stripped(absl::StripAsciiWhitespace(text));
  uint64_t bytes = 0;
  // A text with a zero byte in it ends there for core's reader.
  if (stripped.find('\0') == std::string::npos && core::ParseBytes(stripped.c_str(), 0, &bytes)) {
    return bytes;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", text, "\" is not a byte count: a number with an optional KiB, MiB, GiB or TiB"));
}

std::string ExactBytes(uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    const uint64_t size = uint64_t{1} << unit.shift;
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes >> unit.shift, unit.name);
  }
  return absl::StrCat(bytes);
}

std::string ReadableBytes(uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    const uint64_t size = uint64_t{1} << unit.shift;
    if (bytes < size) continue;
    if (bytes % size == 0) return absl::StrCat(bytes >> unit.shift, " ", unit.name);
    return absl::StrFormat("%.2f %s", static_cast<double>(bytes) / static_cast<double>(size),
                           unit.name);
  }
  return absl::StrCat(bytes, " bytes");
}

}  // namespace tidemark::daemon
