// Lines and comma-separated fields of an untrusted text, without copies; whole numbers read
// strictly. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_LINE_FIELDS_H_
#define TIDEMARK_TESTS_REPLAY_LINE_FIELDS_H_

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::replay {

// Takes the next line off `*text`, without its end ("\n" or "\r\n"). False at the end.
inline bool NextLine(std::string_view* text, std::string_view* line) {
  if (text->empty()) return false;
  const size_t end = text->find('\n');
  *line = text->substr(0, end);
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
  if (!line->empty() && line->back() == '\r') line->remove_suffix(1);
  return true;
}

// The fields of `line`; at most `most` are looked for, the last one then holds the rest.
inline void SplitFields(std::string_view line, size_t most, std::vector<std::string_view>* fields) {
  fields->clear();
  while (fields->size() + 1 < most) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) break;
    fields->push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields->push_back(line);
}

// Digits only, nothing around them. False: `*value` is unchanged.
inline bool ReadNumber(std::string_view field, int base, uint64_t* value) {
  uint64_t read = 0;
  const char* end = field.data() + field.size();
  const auto result = std::from_chars(field.data(), end, read, base);
  if (result.ec != std::errc() || result.ptr != end || field.empty()) return false;
  *value = read;
  return true;
}

// What was found, fit for one line of a message.
inline std::string Quoted(std::string_view field) {
  std::string out = "'";
  for (const char c : field.substr(0, 40)) out += c >= ' ' && c < 127 ? c : '?';
  return out + (field.size() > 40 ? "...'" : "'");
}

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_LINE_FIELDS_H_
