// `tidemark evict`, `prefetch` and `pin`: asks one job to move memory, or not to. Threads: one.

#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/job_argument.h"
#include "client/cli/text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

int Usage(const std::string& sentence) {
  absl::FPrintF(stderr, "tidemark: %s\n", sentence);
  return kUsage;
}

using MoveMethod = grpc::Status (v1::Admin::Stub::*)(grpc::ClientContext*, const v1::MoveRequest&,
                                                     v1::MoveResponse*);

int Move(const Invocation& call, MoveMethod method) {
  uint64_t bytes = UINT64_MAX;  // everything: tidemarkd clamps to what the job holds
  if (call.arguments.size() > 1) {
    if (std::string wrong = ParseBytes(call.arguments[1], 0, "BYTES", &bytes); !wrong.empty())
      return Usage(wrong);
  }
  int failed = kOk;
  v1::MoveRequest request;
  request.set_job_id(JobArgument(call, call.arguments[0], &failed));
  if (failed != kOk) return failed;
  request.set_bytes(bytes);
  v1::MoveResponse response;
  failed = Ask(call, method, request, &response);
  if (failed != kOk) return failed;
  if (call.json()) return PrintJson(response);
  absl::PrintF("%s\n", response.sentence());
  return kOk;
}

int Evict(const Invocation& call) { return Move(call, &v1::Admin::Stub::Evict); }
int Prefetch(const Invocation& call) { return Move(call, &v1::Admin::Stub::Prefetch); }

int Pin(const Invocation& call) {
  int failed = kOk;
  v1::PinRequest request;
  request.set_job_id(JobArgument(call, call.arguments[0], &failed));
  if (failed != kOk) return failed;
  request.set_pinned(!call.has("--off"));
  v1::PinResponse response;
  failed = Ask(call, &v1::Admin::Stub::Pin, request, &response);
  if (failed != kOk) return failed;
  if (call.json()) return PrintJson(response);
  absl::PrintF("%s\n", response.sentence());
  return kOk;
}

}  // namespace

const Verb kEvict = {"evict",
                     "JOB [BYTES]",
                     "ask a job to move memory to the host, all of it or BYTES",
                     "The job acts at its next launch or allocation.",
                     {},
                     1,
                     2,
                     Evict};
const Verb kPrefetch = {"prefetch",
                        "JOB [BYTES]",
                        "ask a job to bring memory back to the device",
                        "The job acts at its next launch or allocation.",
                        {},
                        1,
                        2,
                        Prefetch};
const Verb kPin = {"pin",
                   "JOB",
                   "never ask a job to shrink below what it holds",
                   "",
                   {{"--off", Takes::kNothing, "", "", "allow it again"}},
                   1,
                   1,
                   Pin};

}  // namespace tidemark::client
