// Words for numbers, and tables; see text.h. Threads: stateless.

#include "client/cli/text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/units.h"

namespace tidemark::client {

std::string HumanBytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1024;
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

std::string ShortBytes(uint64_t bytes) {
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1000 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  const char* suffix[] = {"", "K", "M", "G", "T"};
  return absl::StrFormat("%.*f%s", value < 10 && unit > 0 ? 1 : 0, value, suffix[unit]);
}

std::string HumanSeconds(double seconds) {
  if (seconds < 60) return absl::StrFormat("%.1f s", seconds);
  const auto whole = static_cast<int64_t>(seconds);
  if (whole < 3600) return absl::StrFormat("%d min %d s", whole / 60, whole % 60);
  return absl::StrFormat("%d h %d min", whole / 3600, whole % 3600 / 60);
}

std::string ParseBytes(const std::string& text, uint64_t whole, const std::string& flag,
                       uint64_t* bytes) {
  if (core::ParseBytes(text.c_str(), whole, bytes)) return "";
  return absl::StrCat(flag, " '", text,
                      "' is not an amount of memory; accepted are a number of bytes, with "
                      "KiB, MiB, GiB or TiB if you like",
                      whole == 0 ? "" : ", or a share such as 40%");
}

std::string Bar(double share, int width) {
  const double bounded = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0);
  const auto filled = static_cast<size_t>(std::lround(bounded * width));
  return std::string(filled, '#') + std::string(static_cast<size_t>(width) - filled, '.');
}

std::string Table::str() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t i = 0; i < rows_[r].size(); ++i) {
      const std::string& cell = rows_[r][i];
      const std::string& below = rows_.size() > 1 ? rows_[std::max<size_t>(r, 1)][i] : cell;
      const bool number =
          !below.empty() && absl::ascii_isdigit(static_cast<unsigned char>(below[0]));
      const auto width = static_cast<int>(widths[i]);
      absl::StrAppend(
          &line, i == 0 ? "" : "  ",
          number ? absl::StrFormat("%*s", width, cell) : absl::StrFormat("%-*s", width, cell));
    }
    absl::StrAppend(&out, std::string(absl::StripTrailingAsciiWhitespace(line)), "\n");
  }
  return out;
}

}  // namespace tidemark::client
