// `tidemark events`: what happened on the node, and what happens. Threads: one; the handler only
// cancels.

#include <signal.h>

#include <atomic>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/connection.h"
#include "client/cli/verb.h"

namespace tidemark::client {
namespace {

std::atomic<grpc::ClientContext*> g_context{nullptr};

void Cancel(int) {
  if (grpc::ClientContext* context = g_context) context->TryCancel();
}

void Print(const Invocation& call, const v1::Event& event) {
  if (call.json()) {
    PrintJson(event);
  } else {
    const std::string job = event.job_id() == 0 ? "-" : absl::StrCat("job ", event.job_id());
    absl::PrintF(
        "%s  %-16s %-8s %s\n",
        absl::FormatTime("%Y-%m-%d %H:%M:%E3S", absl::FromUnixMillis(event.unix_milliseconds()),
                         absl::LocalTimeZone()),
        event.kind(), job, event.sentence());
  }
  fflush(stdout);
}

int Events(const Invocation& call) {
  v1::WatchEventsRequest request;
  request.set_follow(call.has("--follow"));
  uint64_t after = 0;
  if (call.has("--after") && !absl::SimpleAtoi(call.value("--after"), &after)) {
    absl::FPrintF(stderr, "tidemark: --after '%s' is not an event's number\n",
                  call.value("--after"));
    return kUsage;
  }
  request.set_after_id(after);
  auto stub = Connect(call);
  auto context =
      request.follow() ? std::make_unique<grpc::ClientContext>() : Deadline(absl::Seconds(10));
  g_context = context.get();
  if (request.follow()) signal(SIGINT, Cancel);
  auto reader = stub->WatchEvents(context.get(), request);
  v1::Event event;
  while (reader->Read(&event)) Print(call, event);
  const grpc::Status status = reader->Finish();
  g_context = nullptr;
  if (status.ok() || status.error_code() == grpc::StatusCode::CANCELLED) return kOk;
  return Report(call, status);
}

}  // namespace

const Verb kEvents = {"events",
                      "",
                      "what happened on the node: jobs, refusals, policy",
                      "",
                      {{"--follow", Takes::kNothing, "", "", "go on with new ones until Ctrl-C"},
                       {"--after", Takes::kValue, "ID", "", "only events with a greater number"}},
                      0,
                      0,
                      Events};

}  // namespace tidemark::client
