// Reads and writes step traces (format: README.md here): one training iteration as text, plain or
// gzip. A trace is untrusted: whatever is wrong with it becomes one sentence that names the line.
// For tests and benchmarks; the product learns its steps from a running job instead.
// Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_STEP_TRACE_H_
#define TIDEMARK_TESTS_STEP_STEP_TRACE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/step.h"

namespace tidemark::steps {

struct NamedStep {
  std::string name;
  core::Step step;
  std::vector<std::string> op_names;  // one for each operation
};

inline constexpr size_t kTraceTextLimit = size_t{256} << 20;           // unpacked
inline constexpr core::Bytes kTensorLimit = core::Bytes{1} << 50;      // of one tensor
inline constexpr core::Nanoseconds kDurationLimit = int64_t{1} << 50;  // of one operation

// False: *error is one sentence, and *out is not to be used.
bool ParseStepTrace(std::string_view text, NamedStep* out, std::string* error);
bool ReadStepTrace(const std::string& path, NamedStep* out, std::string* error);

// The text of a trace that reads back as the same step. `origin` goes into its header.
std::string StepTraceText(const NamedStep& step, std::string_view origin);

// The step traces directly in a folder (*.csv, *.csv.gz), sorted by name; empty if there are none.
std::vector<std::string> StepTracesIn(const std::string& folder);

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_STEP_TRACE_H_
