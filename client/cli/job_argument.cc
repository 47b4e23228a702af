// A JOB argument, by number or by name; see job_argument.h. Threads: one.

#include "client/cli/job_argument.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"

namespace tidemark::client {

uint64_t JobArgument(const Invocation& call, const std::string& word, int* failed) {
  *failed = kOk;
  uint64_t id = 0;
  if (absl::SimpleAtoi(word, &id)) return id;
  v1::GetNodeResponse node;
  *failed = Ask(call, &v1::Admin::Stub::GetNode, v1::GetNodeRequest(), &node);
  if (*failed != kOk) return 0;
  int matches = 0;
  for (const v1::Job& job : node.jobs()) {
    if (job.name() != word) continue;
    id = job.id();
    ++matches;
  }
  if (matches == 1) return id;
  *failed = kFailed;
  if (matches == 0) {
    absl::FPrintF(stderr, "tidemark: no attached job is called '%s'; `tidemark jobs` lists them\n",
                  word);
  } else {
    absl::FPrintF(stderr, "tidemark: several jobs are called '%s'; name one by its number\n", word);
  }
  return 0;
}

}  // namespace tidemark::client
