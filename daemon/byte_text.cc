#include "daemon/byte_text.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tidemark::daemon {
namespace {

struct Unit {
  const char* name;
  unsigned shift;
};
constexpr Unit kUnits[] = {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}};

}  // namespace

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  const auto bad = [&] {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text,
        "\" is not a byte count: a whole number with an optional KiB, MiB, GiB or TiB"));
  };
  absl::string_view digits = absl::StripAsciiWhitespace(text);
  unsigned shift = 0;
  for (const Unit& unit : kUnits) {
    if (digits.size() > 3 && digits.substr(digits.size() - 3) == unit.name) {
      shift = unit.shift;
      digits = absl::StripTrailingAsciiWhitespace(digits.substr(0, digits.size() - 3));
      break;
    }
  }
  uint64_t count = 0;
  if (digits.empty() || !absl::ascii_isdigit(digits[0]) || !absl::SimpleAtoi(digits, &count)) {
    return bad();
  }
  if (count > (UINT64_MAX >> shift)) return bad();
  return count << shift;
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
