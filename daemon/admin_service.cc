// The calls of tidemark.v1.Admin.

#include "daemon/admin_service.h"

#include "absl/strings/str_cat.h"
#include "daemon/admin_convert.h"
#include "daemon/admin_policy.h"
#include "daemon/byte_text.h"

namespace tidemark::daemon {
namespace {

// Each follower occupies a server thread.
constexpr int kMostFollowers = 64;
// How late a stream notices that its client went away or the daemon stops.
constexpr absl::Duration kFollowSlice = absl::Milliseconds(200);

// The canonical codes of Abseil and gRPC are the same numbers.
grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(status.message()));
}

grpc::Status AnswerMove(absl::string_view what, const v1::MoveRequest& request,
                        const absl::StatusOr<uint64_t>& accepted, v1::MoveResponse* response) {
  if (!accepted.ok()) return ToGrpc(accepted.status());
  response->set_accepted_bytes(*accepted);
  std::string sentence =
      absl::StrCat("Job ", request.job_id(), " was asked to ", what, " ", ReadableBytes(*accepted),
                   "; it acts at its next launch or allocation.");
  if (*accepted < request.bytes()) {
    absl::StrAppend(&sentence, " That is all it can move.");
  }
  response->set_sentence(sentence);
  return grpc::Status::OK;
}

grpc::Status CheckBytes(const v1::MoveRequest& request) {
  if (request.bytes() > 0) return grpc::Status::OK;
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "bytes is 0; accepted: at least 1");
}

}  // namespace

grpc::Status AdminService::GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                                      v1::GetVersionResponse* response) {
  response->set_version(TIDEMARK_VERSION);
  response->set_wire_version(TM_WIRE_VERSION);
  response->set_driver_path(node_.DriverPath());
  response->set_driver_version(node_.DriverVersion());
  return grpc::Status::OK;
}

grpc::Status AdminService::GetNode(grpc::ServerContext*, const v1::GetNodeRequest*,
                                   v1::GetNodeResponse* response) {
  FillNode(node_.Snapshot(), response);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetMemoryMap(grpc::ServerContext*,
                                        const v1::GetMemoryMapRequest* request,
                                        v1::GetMemoryMapResponse* response) {
  const absl::StatusOr<std::vector<ChunkRun>> runs = node_.MemoryMap(request->job_id());
  if (!runs.ok()) return ToGrpc(runs.status());
  response->set_job_id(request->job_id());
  response->set_chunk_bytes(node_.Snapshot().chunk_bytes);
  FillMemoryMap(*runs, response);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetPolicy(grpc::ServerContext*, const v1::GetPolicyRequest*,
                                     v1::GetPolicyResponse* response) {
  FillPolicy(node_.GetPolicy(), response);
  return grpc::Status::OK;
}

grpc::Status AdminService::SetPolicy(grpc::ServerContext* context,
                                     const v1::SetPolicyRequest* request,
                                     v1::GetPolicyResponse* response) {
  absl::MutexLock lock(&policy_change_);
  absl::StatusOr<PolicyChange> change = MergePolicy(node_.GetPolicy(), *request);
  if (!change.ok()) return ToGrpc(change.status());
  change->actor = name_actor_(*context);
  const absl::StatusOr<Policy> policy = node_.ChangePolicy(*change);
  if (!policy.ok()) return ToGrpc(policy.status());
  FillPolicy(*policy, response);
  return grpc::Status::OK;
}

grpc::Status AdminService::ExplainPolicy(grpc::ServerContext*,
                                         const v1::ExplainPolicyRequest* request,
                                         v1::ExplainPolicyResponse* response) {
  const absl::StatusOr<std::vector<std::string>> sentences = node_.ExplainPolicy(request->job_id());
  if (!sentences.ok()) return ToGrpc(sentences.status());
  for (const std::string& sentence : *sentences) response->add_sentences(sentence);
  return grpc::Status::OK;
}

grpc::Status AdminService::Evict(grpc::ServerContext*, const v1::MoveRequest* request,
                                 v1::MoveResponse* response) {
  if (grpc::Status status = CheckBytes(*request); !status.ok()) return status;
  return AnswerMove("evict", *request, node_.RequestEvict(request->job_id(), request->bytes()),
                    response);
}

grpc::Status AdminService::Prefetch(grpc::ServerContext*, const v1::MoveRequest* request,
                                    v1::MoveResponse* response) {
  if (grpc::Status status = CheckBytes(*request); !status.ok()) return status;
  return AnswerMove("prefetch", *request,
                    node_.RequestPrefetch(request->job_id(), request->bytes()), response);
}

grpc::Status AdminService::Pin(grpc::ServerContext*, const v1::PinRequest* request,
                               v1::PinResponse* response) {
  const absl::Status status = node_.SetPinned(request->job_id(), request->pinned());
  if (!status.ok()) return ToGrpc(status);
  response->set_sentence(
      request->pinned()
          ? absl::StrCat("Job ", request->job_id(), " is no longer asked to shrink.")
          : absl::StrCat("Job ", request->job_id(), " may be asked to shrink again."));
  return grpc::Status::OK;
}

grpc::Status AdminService::WatchEvents(grpc::ServerContext* context,
                                       const v1::WatchEventsRequest* request,
                                       grpc::ServerWriter<v1::Event>* writer) {
  if (!request->follow()) {
    for (const Event& event : node_.EventsAfter(request->after_id())) {
      v1::Event message;
      FillEvent(event, &message);
      if (!writer->Write(message)) break;
    }
    return grpc::Status::OK;
  }
  if (followers_.fetch_add(1) >= kMostFollowers) {
    followers_.fetch_sub(1);
    return grpc::Status(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat(kMostFollowers,
                     " clients follow events already, which is the most; end one of "
                     "them or ask without follow"));
  }
  grpc::Status status = Follow(context, request->after_id(), writer);
  followers_.fetch_sub(1);
  return status;
}

grpc::Status AdminService::Follow(grpc::ServerContext* context, uint64_t last,
                                  grpc::ServerWriter<v1::Event>* writer) {
  while (!context->IsCancelled()) {
    const bool last_round = stopping_;  // before the read, so that no event of the end is missed
    for (const Event& event : node_.EventsAfter(last)) {
      v1::Event message;
      FillEvent(event, &message);
      if (!writer->Write(message)) return grpc::Status::OK;
      last = event.id;
    }
    if (last_round) break;
    node_.WaitForEvent(last, kFollowSlice);
  }
  return grpc::Status::OK;
}

}  // namespace tidemark::daemon
