// Implementation of tests/replay/rmm_log.h. Threads: none.

#include "tests/replay/rmm_log.h"

#include "tests/replay/address_trace.h"
#include "tests/replay/line_fields.h"

namespace tidemark::replay {
namespace {

constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream";
constexpr size_t kFields = 6;

// Versions of RMM differ: "0x7f00", "7f00", "(nil)". All that matters is that the same text is the
// same number, so digits without a prefix are hexadecimal, too, unless that is more than 64 bits.
bool ReadHexOrDecimal(std::string_view field, uint64_t* value) {
  if (field.starts_with("0x")) return ReadNumber(field.substr(2), 16, value);
  if (field == "(nil)") return *value = 0, true;
  return ReadNumber(field, 16, value) || ReadNumber(field, 10, value);
}

// Empty, or what is wrong with the line.
std::string Take(std::string_view line, std::vector<std::string_view>* fields, AddressTrace* out) {
  if (line.empty()) return "";
  SplitFields(line, kFields + 1, fields);
  if (fields->size() != kFields) {
    return "has " + std::to_string(fields->size()) + " fields, not " + std::string(kHeader);
  }
  const std::string_view action = (*fields)[2];
  if (action == "allocate failure") return "";
  if (action != "allocate" && action != "free") {
    return "action " + Quoted(action) + " is none of allocate, free, allocate failure";
  }
  uint64_t pointer = 0;
  uint64_t bytes = 0;
  uint64_t stream = 0;
  if (!ReadHexOrDecimal((*fields)[3], &pointer)) {
    return "pointer " + Quoted((*fields)[3]) + " is not an address";
  }
  if (!ReadNumber((*fields)[4], 10, &bytes) || bytes > kLargestBlock) {
    return "size " + Quoted((*fields)[4]) + " is not a number of bytes up to " +
           std::to_string(kLargestBlock);
  }
  if (!ReadHexOrDecimal((*fields)[5], &stream)) {
    return "stream " + Quoted((*fields)[5]) + " is not a number";
  }
  if (pointer == 0) return "";  // zero bytes asked for
  if (out->events() == kMostEvents) {
    return "more than " + std::to_string(kMostEvents) + " events, the most accepted";
  }
  if (action == "free") {
    out->Free(pointer, bytes, stream);
  } else if (!out->Allocate(pointer, bytes, stream)) {
    return "pointer " + Quoted((*fields)[3]) + " is allocated and was not freed";
  }
  return "";
}

}  // namespace

bool LooksLikeRmmLog(std::string_view text) { return text.starts_with(kHeader); }

bool ReadRmmLog(std::string_view text, Trace* trace, std::string* error) {
  *trace = Trace();
  trace->recorded = true;
  std::string_view line;
  std::vector<std::string_view> fields;
  AddressTrace out;
  for (size_t number = 1; NextLine(&text, &line); ++number) {
    std::string wrong;
    if (number == 1) {
      if (line != kHeader) wrong = "is not the header " + std::string(kHeader);
    } else {
      wrong = Take(line, &fields, &out);
    }
    if (wrong.empty()) continue;
    *error = "line " + std::to_string(number) + ": " + wrong;
    return false;
  }
  if (out.events() == 0) {
    *error = "holds no events";
    return false;
  }
  out.Build(trace);
  return true;
}

}  // namespace tidemark::replay
