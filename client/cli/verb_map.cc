// `tidemark map JOB`: where a job's chunks are. Threads: one.

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/job_argument.h"
#include "client/cli/text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

int Map(const Invocation& call) {
  int failed = kOk;
  v1::GetMemoryMapRequest request;
  request.set_job_id(JobArgument(call, call.arguments[0], &failed));
  if (failed != kOk) return failed;
  v1::GetMemoryMapResponse map;
  failed = Ask(call, &v1::Admin::Stub::GetMemoryMap, request, &map);
  if (failed != kOk) return failed;
  if (call.json()) return PrintJson(map);
  Table table({"GPU", "PLACE", "FIRST CHUNK", "CHUNKS", "BYTES", "LEASED BY"});
  for (const auto& run : map.runs()) {
    table.Add({absl::StrCat(run.device()), run.place(),
               absl::StrFormat("%#x", run.first_chunk_id()), absl::StrCat(run.count()),
               HumanBytes(run.count() * map.chunk_bytes()),
               run.adopted() ? "a former daemon" : "this daemon"});
  }
  absl::PrintF("%s", table.empty() ? "the job holds no chunks\n" : table.str());
  return kOk;
}

}  // namespace

const Verb kMap = {"map",
                   "JOB",
                   "where a job's chunks are, on the device and in host memory",
                   "JOB is a number or a name from `tidemark jobs`.",
                   {},
                   1,
                   1,
                   Map};

}  // namespace tidemark::client
