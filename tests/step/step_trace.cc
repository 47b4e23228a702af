#include "tests/step/step_trace.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <unordered_map>

#include "tests/replay/file_text.h"
#include "tests/replay/line_fields.h"

namespace tidemark::steps {
namespace {

using core::BufferIndex;
using core::Bytes;
using core::Nanoseconds;
using core::OpIndex;
using replay::Quoted;

constexpr size_t kRowLimit = size_t{1} << 22;      // of tensors, of operations
constexpr size_t kMostAccesses = size_t{1} << 25;  // of all operations

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

class TraceParser {
 public:
  TraceParser(NamedStep* out, std::string* error) : out_(out), error_(error) {}

  bool Parse(std::string_view text) {
    *out_ = NamedStep();
    for (std::string_view line; replay::NextLine(&text, &line);) {
      ++line_;
      if (!Line(line)) return false;
    }
    return Finish();
  }

 private:
  bool Fail(const std::string& sentence) {
    *error_ = "line " + std::to_string(line_) + ": " + sentence;
    return false;
  }

  bool Line(std::string_view line) {
    if (line.empty()) return true;
    if (line[0] == '#') return Comment(line);
    if (line_ > 1 && !headed_) return Fail("the first line must start with '# step trace v1'");
    const std::vector<std::string_view> fields = Split(line, ',');
    if (fields[0] == "tensor") return Tensor(fields);
    if (fields[0] == "op") return Op(fields);
    return Fail("a row is 'tensor,...' or 'op,...', not " + Quoted(fields[0]));
  }

  // The first comment says the version; "key=value" words of the others are read, the rest is
  // prose.
  bool Comment(std::string_view line) {
    if (line_ == 1) {
      headed_ = line.starts_with("# step trace v1") &&
                (line.size() == 15 || line[15] == ':' || line[15] == ' ');
      if (!headed_) return Fail("the first line must start with '# step trace v1'");
      return true;
    }
    for (std::string_view word : Split(line.substr(1), ' ')) {
      if (word.starts_with("net=")) out_->name = std::string(word.substr(4, 80));
      if (word.starts_with("ops=") && !replay::ReadNumber(word.substr(4), 10, &promised_ops_)) {
        return Fail("ops= takes a whole number, not " + Quoted(word.substr(4)));
      }
      if (word.starts_with("ideal_ns=") && !replay::ReadNumber(word.substr(9), 10, &promised_ns_)) {
        return Fail("ideal_ns= takes a whole number, not " + Quoted(word.substr(9)));
      }
    }
    return true;
  }

  bool Tensor(const std::vector<std::string_view>& fields) {
    if (!headed_) return Fail("the first line must start with '# step trace v1'");
    if (fields.size() != 4) {
      return Fail("a tensor row has 4 fields (tensor,id,bytes,persistent), not " +
                  std::to_string(fields.size()));
    }
    uint64_t id = 0, bytes = 0;
    if (!replay::ReadNumber(fields[1], 10, &id))
      return Fail("tensor id " + Quoted(fields[1]) + " is not a number");
    if (!replay::ReadNumber(fields[2], 10, &bytes) || bytes == 0 || bytes > kTensorLimit) {
      return Fail("tensor bytes must be 1 to " + std::to_string(kTensorLimit) + ", not " +
                  Quoted(fields[2]));
    }
    if (fields[3] != "0" && fields[3] != "1") {
      return Fail("persistent must be 0 or 1, not " + Quoted(fields[3]));
    }
    if (out_->step.buffers.size() == kRowLimit) return Fail("more than 4194304 tensors");
    const auto index = static_cast<BufferIndex>(out_->step.buffers.size());
    if (!index_.emplace(id, index).second) {
      return Fail("tensor id " + std::to_string(id) + " was given before");
    }
    core::StepBuffer buffer;
    buffer.bytes = bytes;
    buffer.persistent = fields[3] == "1";
    buffer.born = std::numeric_limits<OpIndex>::max();  // until an operation uses it
    last_access_.push_back(kNoAccess);
    return out_->step.buffers.Append(buffer) || Fail("out of memory");
  }

  bool Op(const std::vector<std::string_view>& fields) {
    if (!headed_) return Fail("the first line must start with '# step trace v1'");
    if (fields.size() != 6) {
      return Fail("an op row has 6 fields (op,index,name,duration_ns,inputs,outputs), not " +
                  std::to_string(fields.size()));
    }
    uint64_t index = 0, duration = 0;
    const size_t expected = out_->step.ops.size();
    if (!replay::ReadNumber(fields[1], 10, &index) || index != expected) {
      return Fail("operations are numbered from 0 in order: expected " + std::to_string(expected) +
                  ", not " + Quoted(fields[1]));
    }
    if (!replay::ReadNumber(fields[3], 10, &duration) || duration > uint64_t{kDurationLimit}) {
      return Fail("duration_ns must be 0 to " + std::to_string(kDurationLimit) + ", not " +
                  Quoted(fields[3]));
    }
    if (expected == kRowLimit) return Fail("more than 4194304 operations");
    core::StepOp op;
    op.duration = static_cast<Nanoseconds>(duration);
    op.first_access = static_cast<uint32_t>(out_->step.accesses.size());
    if (!Accesses(fields[4], op.first_access, false)) return false;
    if (!Accesses(fields[5], op.first_access, true)) return false;
    op.access_count = static_cast<uint32_t>(out_->step.accesses.size()) - op.first_access;
    out_->op_names.emplace_back(fields[2]);
    return out_->step.ops.Append(op) || Fail("out of memory");
  }

  bool Accesses(std::string_view ids, uint32_t first, bool write) {
    if (ids.empty()) return true;
    for (std::string_view text : Split(ids, ';')) {
      uint64_t id = 0;
      if (!replay::ReadNumber(text, 10, &id)) {
        return Fail("tensor ids are numbers with ';' between them, not " + Quoted(text));
      }
      const auto found = index_.find(id);
      if (found == index_.end()) {
        return Fail("tensor " + std::to_string(id) + " has no tensor row above this line");
      }
      if (!Touch(found->second, first, write)) return false;
    }
    return true;
  }

  // A tensor that stands twice in one operation is one access that does both.
  bool Touch(BufferIndex buffer, uint32_t first, bool write) {
    core::Step& step = out_->step;
    const auto op = static_cast<OpIndex>(step.ops.size());
    core::StepBuffer& b = step.buffers[buffer];
    b.born = std::min(b.born, op);
    b.freed = op;
    const size_t i = last_access_[buffer];
    if (i >= first && i < step.accesses.size()) {
      (write ? step.accesses[i].write : step.accesses[i].read) = true;
      return true;
    }
    if (step.accesses.size() == kMostAccesses) return Fail("more than 33554432 accesses");
    last_access_[buffer] = step.accesses.size();
    return step.accesses.Append({buffer, !write, write}) || Fail("out of memory");
  }

  bool Finish() {
    if (!headed_) return Fail("the file is empty; a trace starts with '# step trace v1'");
    core::Step& step = out_->step;
    if (step.ops.empty()) return Fail("the trace ends without an op row");
    if (promised_ops_ != 0 && promised_ops_ != step.ops.size()) {
      return Fail("the header promises " + std::to_string(promised_ops_) +
                  " operations, and the file has " + std::to_string(step.ops.size()) +
                  ": it is cut off or damaged");
    }
    uint64_t total_ns = 0;
    for (const core::StepOp& op : step.ops) total_ns += static_cast<uint64_t>(op.duration);
    if (promised_ns_ != 0 && promised_ns_ != total_ns) {
      return Fail("the header promises " + std::to_string(promised_ns_) +
                  " ns, and the durations add up to " + std::to_string(total_ns));
    }
    DropUnused();
    return true;
  }

  // A transient tensor that no operation uses takes no memory at any time.
  void DropUnused() {
    core::Step& step = out_->step;
    std::vector<BufferIndex> renamed(step.buffers.size());
    BufferIndex kept = 0;
    for (size_t i = 0; i < step.buffers.size(); ++i) {
      core::StepBuffer b = step.buffers[i];
      const bool used = b.born != std::numeric_limits<OpIndex>::max();
      if (!used && !b.persistent) continue;
      if (b.persistent) b.born = b.freed = 0;
      renamed[i] = kept;
      step.buffers[kept++] = b;
    }
    for (core::StepAccess& access : step.accesses) access.buffer = renamed[access.buffer];
    core::Array<core::StepBuffer> shorter;
    if (!shorter.Reserve(kept)) return;
    for (BufferIndex i = 0; i < kept; ++i) {
      if (!shorter.Append(step.buffers[i])) return;
    }
    step.buffers = std::move(shorter);
  }

  NamedStep* out_;
  std::string* error_;
  static constexpr size_t kNoAccess = ~size_t{0};

  std::unordered_map<uint64_t, BufferIndex> index_;
  std::vector<size_t> last_access_;  // per buffer: where in the list of accesses
  size_t line_ = 0;
  bool headed_ = false;
  uint64_t promised_ops_ = 0;
  uint64_t promised_ns_ = 0;
};

}  // namespace

bool ParseStepTrace(std::string_view text, NamedStep* out, std::string* error) {
  return TraceParser(out, error).Parse(text);
}

bool ReadStepTrace(const std::string& path, NamedStep* out, std::string* error) {
  std::string text;
  if (!replay::ReadFileText(path, kTraceTextLimit, &text, error)) {
    *error = "step trace " + *error;
    return false;
  }
  if (!ParseStepTrace(text, out, error)) {
    *error = "step trace " + path + ": " + *error;
    return false;
  }
  if (out->name.empty()) {
    out->name = std::filesystem::path(path).filename().string();
    out->name = out->name.substr(0, out->name.find(".csv"));
  }
  return true;
}

std::string StepTraceText(const NamedStep& named, std::string_view origin) {
  const core::Step& step = named.step;
  Nanoseconds total = 0;
  for (const core::StepOp& op : step.ops) total += op.duration;
  std::string text = "# step trace v1: one training iteration, kernel by kernel\n# source: ";
  text.append(origin);
  text += "\n# net=" + named.name + " ops=" + std::to_string(step.ops.size()) +
          " ideal_ns=" + std::to_string(total) + "\n";
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    text += "tensor," + std::to_string(i) + "," + std::to_string(step.buffers[i].bytes) +
            (step.buffers[i].persistent ? ",1\n" : ",0\n");
  }
  for (size_t i = 0; i < step.ops.size(); ++i) {
    const core::StepOp& op = step.ops[i];
    std::string reads, writes;
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      const core::StepAccess& access = step.accesses[a];
      const std::string id = std::to_string(access.buffer);
      if (access.read) reads += (reads.empty() ? "" : ";") + id;
      if (access.write) writes += (writes.empty() ? "" : ";") + id;
    }
    text += "op," + std::to_string(i) + "," + named.op_names[i] + "," +
            std::to_string(op.duration) + "," + reads + "," + writes + "\n";
  }
  return text;
}

std::vector<std::string> StepTracesIn(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (std::filesystem::directory_iterator it(folder, ignored), end; !ignored && it != end;
       it.increment(ignored)) {
    const std::string path = it->path().string();
    if (path.ends_with(".csv") || path.ends_with(".csv.gz")) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace tidemark::steps
