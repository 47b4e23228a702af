// Implementation of tests/replay/csv_trace.h. Threads: none.

#include "tests/replay/csv_trace.h"

#include <unordered_map>

#include "tests/replay/line_fields.h"

namespace tidemark::replay {
namespace {

constexpr std::string_view kFirstLine = "# allocation trace v1";
constexpr std::string_view kReserved = "recorded_peak_reserved_bytes=";
constexpr size_t kFields = 5;

struct Row {
  bool allocate = false;
  uint64_t id = 0;
  uint64_t bytes = 0;
  uint64_t stream = 0;
  uint64_t time_us = 0;
};

class Reader {
 public:
  explicit Reader(Trace* trace) : trace_(trace) {}

  // Empty, or what is wrong with the line.
  std::string Take(std::string_view line) {
    if (line.empty()) return "";
    if (line[0] == '#') return TakeComment(line);
    Row row;
    const std::string wrong = Parse(line, &row);
    if (!wrong.empty()) return wrong;
    if (trace_->events.size() == kMostEvents) {
      return "more than " + std::to_string(kMostEvents) + " events, the most accepted";
    }
    if (row.time_us < time_us_) {
      return "time " + std::to_string(row.time_us) + " lies before the previous line's " +
             std::to_string(time_us_);
    }
    time_us_ = row.time_us;
    return row.allocate ? Allocate(row) : Free(row);
  }

 private:
  std::string TakeComment(std::string_view line) {
    const size_t at = line.find(kReserved);
    if (at == std::string_view::npos) return "";
    std::string_view number = line.substr(at + kReserved.size());
    number = number.substr(0, number.find(' '));
    if (ReadNumber(number, 10, &trace_->recorded_peak_reserved)) return "";
    return std::string(kReserved) + Quoted(number) + " is not a whole number";
  }

  std::string Parse(std::string_view line, Row* row) {
    SplitFields(line, kFields + 1, &fields_);
    if (fields_.size() != kFields) {
      return "has " + std::to_string(fields_.size()) + " fields, not op,id,bytes,stream,time_us";
    }
    if (fields_[0] != "a" && fields_[0] != "f") {
      return "operation " + Quoted(fields_[0]) + " is neither 'a' (allocate) nor 'f' (free)";
    }
    row->allocate = fields_[0] == "a";
    static constexpr const char* kNames[] = {"", "id", "bytes", "stream", "time_us"};
    uint64_t* const values[] = {nullptr, &row->id, &row->bytes, &row->stream, &row->time_us};
    for (size_t i = 1; i < kFields; ++i) {
      if (ReadNumber(fields_[i], 10, values[i])) continue;
      return std::string(kNames[i]) + " " + Quoted(fields_[i]) + " is not a whole number";
    }
    if (row->bytes <= kLargestBlock) return "";
    return "bytes " + std::to_string(row->bytes) + " is above " + std::to_string(kLargestBlock);
  }

  std::string Allocate(const Row& row) {
    const auto block = static_cast<BlockId>(trace_->blocks.size());
    if (!ids_.emplace(row.id, block).second) {
      return "id " + std::to_string(row.id) + " was allocated before";
    }
    const auto stream =
        streams_.emplace(row.stream, static_cast<uint32_t>(streams_.size())).first->second;
    trace_->blocks.push_back({row.bytes, stream, 0});
    live_.push_back(true);
    if (row.time_us == 0 && trace_->preexisting == trace_->events.size()) ++trace_->preexisting;
    trace_->events.push_back({block, true});
    return "";
  }

  std::string Free(const Row& row) {
    const auto found = ids_.find(row.id);
    const std::string id = "id " + std::to_string(row.id);
    if (found == ids_.end()) return id + " is freed and was never allocated";
    const BlockId block = found->second;
    if (!live_[block]) return id + " is freed twice";
    if (trace_->blocks[block].bytes != row.bytes) {
      return id + " is freed with " + std::to_string(row.bytes) + " bytes and was allocated with " +
             std::to_string(trace_->blocks[block].bytes);
    }
    live_[block] = false;
    trace_->events.push_back({block, false});
    return "";
  }

  Trace* trace_;
  uint64_t time_us_ = 0;
  std::unordered_map<uint64_t, BlockId> ids_;
  std::unordered_map<uint64_t, uint32_t> streams_;
  std::vector<bool> live_;
  std::vector<std::string_view> fields_;
};

}  // namespace

bool LooksLikeCsvTrace(std::string_view text) { return text.starts_with(kFirstLine); }

bool ReadCsvTrace(std::string_view text, Trace* trace, std::string* error) {
  *trace = Trace();
  trace->recorded = true;
  if (!LooksLikeCsvTrace(text)) {
    *error = "line 1: does not begin with '" + std::string(kFirstLine) + "'";
    return false;
  }
  Reader reader(trace);
  std::string_view line;
  for (size_t number = 1; NextLine(&text, &line); ++number) {
    const std::string wrong = reader.Take(line);
    if (wrong.empty()) continue;
    *error = "line " + std::to_string(number) + ": " + wrong;
    return false;
  }
  if (trace->events.empty()) {
    *error = "holds no events";
    return false;
  }
  return true;
}

}  // namespace tidemark::replay
