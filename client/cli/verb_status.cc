// `tidemark status`, `tidemark jobs` and `tidemark snapshot`: the node in one answer. Threads: one.

#include <fcntl.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/connection.h"
#include "client/cli/node_text.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

int AskNode(const Invocation& call, v1::GetNodeResponse* node) {
  return Ask(call, &v1::Admin::Stub::GetNode, v1::GetNodeRequest(), node);
}

template <std::string (*Text)(const v1::GetNodeResponse&)>
int ShowNode(const Invocation& call) {
  v1::GetNodeResponse node;
  if (int failed = AskNode(call, &node); failed != kOk) return failed;
  if (call.json()) return PrintJson(node);
  absl::PrintF("%s", Text(node));
  return kOk;
}

// The events that tidemarkd still keeps, as the members of a JSON array.
int PrintEvents(const Invocation& call) {
  auto stub = Connect(call);
  auto context = Deadline();
  auto reader = stub->WatchEvents(context.get(), v1::WatchEventsRequest());
  v1::Event event;
  const char* between = "";
  while (reader->Read(&event)) {
    absl::PrintF("%s", between);
    if (int failed = PrintJson(event); failed != kOk) return failed;
    between = ", ";
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? kOk : Report(call, status);
}

// Everything tidemarkd knows, as one JSON document for a bug report.
int Snapshot(const Invocation& call) {
  v1::GetNodeResponse node;
  v1::GetPolicyResponse policy;
  v1::GetVersionResponse version;
  if (int failed = AskNode(call, &node); failed != kOk) return failed;
  if (int failed = Ask(call, &v1::Admin::Stub::GetPolicy, v1::GetPolicyRequest(), &policy);
      failed != kOk) {
    return failed;
  }
  if (int failed = Ask(call, &v1::Admin::Stub::GetVersion, v1::GetVersionRequest(), &version);
      failed != kOk) {
    return failed;
  }
  absl::PrintF("{\"version\": ");
  if (int failed = PrintJson(version); failed != kOk) return failed;
  absl::PrintF(", \"node\": ");
  if (int failed = PrintJson(node); failed != kOk) return failed;
  absl::PrintF(", \"policy\": ");
  if (int failed = PrintJson(policy); failed != kOk) return failed;
  absl::PrintF(", \"maps\": [");
  const char* between = "";
  for (const v1::Job& job : node.jobs()) {
    v1::GetMemoryMapRequest request;
    request.set_job_id(job.id());
    v1::GetMemoryMapResponse map;
    // A job that ended since GetNode answered has no map any more.
    if (!Connect(call)->GetMemoryMap(Deadline().get(), request, &map).ok()) continue;
    absl::PrintF("%s", between);
    if (int failed = PrintJson(map); failed != kOk) return failed;
    between = ", ";
  }
  absl::PrintF("], \"events\": [");
  if (int failed = PrintEvents(call); failed != kOk) return failed;
  absl::PrintF("]}\n");
  return kOk;
}

}  // namespace

const Verb kStatus = {"status",
                      "",
                      "who holds which memory, as a sum that adds up",
                      "",
                      {},
                      0,
                      0,
                      ShowNode<StatusText>};
const Verb kJobs = {
    "jobs", "", "the attached jobs, a line for each GPU", "", {}, 0, 0, ShowNode<JobsText>};
const Verb kSnapshot = {"snapshot",
                        "",
                        "everything tidemarkd knows, as JSON",
                        "For a bug report:\n\n"
                        "  tidemark snapshot > tidemark.json",
                        {},
                        0,
                        0,
                        Snapshot};

}  // namespace tidemark::client
