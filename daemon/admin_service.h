// The calls of tidemark.v1.Admin, each a few lines over Node. Knows nothing of sockets.
//
// Thread rule: every method may run on any thread at any time; Shutdown ends the event streams.

#ifndef TIDEMARK_DAEMON_ADMIN_SERVICE_H_
#define TIDEMARK_DAEMON_ADMIN_SERVICE_H_

#include <atomic>
#include <functional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "daemon/node.h"
#include "proto/tidemark/v1/admin.grpc.pb.h"

namespace tidemark::daemon {

class AdminService final : public v1::Admin::Service {
 public:
  // `name_actor` says who is behind a call, for the audit log: "uid 1000 pid 4242".
  AdminService(Node& node, std::function<std::string(const grpc::ServerContext&)> name_actor)
      : node_(node), name_actor_(std::move(name_actor)) {}

  // Streams end with OK soon after; calls that start later still answer.
  void Shutdown() { stopping_ = true; }

  grpc::Status GetVersion(grpc::ServerContext*, const v1::GetVersionRequest*,
                          v1::GetVersionResponse* response) override;
  grpc::Status GetNode(grpc::ServerContext*, const v1::GetNodeRequest*,
                       v1::GetNodeResponse* response) override;
  grpc::Status GetMemoryMap(grpc::ServerContext*, const v1::GetMemoryMapRequest* request,
                            v1::GetMemoryMapResponse* response) override;
  grpc::Status GetPolicy(grpc::ServerContext*, const v1::GetPolicyRequest*,
                         v1::GetPolicyResponse* response) override;
  grpc::Status SetPolicy(grpc::ServerContext* context, const v1::SetPolicyRequest* request,
                         v1::GetPolicyResponse* response) override;
  grpc::Status ExplainPolicy(grpc::ServerContext*, const v1::ExplainPolicyRequest* request,
                             v1::ExplainPolicyResponse* response) override;
  grpc::Status Evict(grpc::ServerContext*, const v1::MoveRequest* request,
                     v1::MoveResponse* response) override;
  grpc::Status Prefetch(grpc::ServerContext*, const v1::MoveRequest* request,
                        v1::MoveResponse* response) override;
  grpc::Status Pin(grpc::ServerContext*, const v1::PinRequest* request,
                   v1::PinResponse* response) override;
  grpc::Status WatchEvents(grpc::ServerContext* context, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::Event>* writer) override;

 private:
  grpc::Status Follow(grpc::ServerContext* context, uint64_t last,
                      grpc::ServerWriter<v1::Event>* writer);

  Node& node_;
  const std::function<std::string(const grpc::ServerContext&)> name_actor_;
  std::atomic<bool> stopping_{false};
  std::atomic<int> followers_{0};
  // Serialises read-merge-write of the policy between callers.
  absl::Mutex policy_change_;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_ADMIN_SERVICE_H_
