// The way to tidemarkd's admin service. Threads: one.

#ifndef TIDEMARK_CLIENT_CLI_CONNECTION_H_
#define TIDEMARK_CLIENT_CLI_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "client/cli/verb.h"
#include "proto/tidemark/v1/admin.grpc.pb.h"

namespace tidemark::client {

// --admin, else $TIDEMARK_ADMIN, else this user's tidemarkd, else the node's.
std::string AdminAddress(const Invocation& call);
// The sentence on a Unix socket whose permissions keep this user out; "" for any other address.
std::string WhyBarred(const std::string& address);

std::unique_ptr<v1::Admin::Stub> Connect(const Invocation& call);

// A context with the deadline of ordinary questions.
std::unique_ptr<grpc::ClientContext> Deadline(absl::Duration timeout = absl::Seconds(5));

// Prints the sentence of a failed call to stderr and returns the exit status for it.
int Report(const Invocation& call, const grpc::Status& status);

// One request, one answer: returns kOk, or prints and returns the exit status.
template <typename Method, typename Request, typename Response>
int Ask(const Invocation& call, Method method, const Request& request, Response* response) {
  auto stub = Connect(call);
  auto context = Deadline();
  const grpc::Status status = ((*stub).*method)(context.get(), request, response);
  return status.ok() ? kOk : Report(call, status);
}

// `message` as JSON on stdout, field names as in the .proto, defaults included.
int PrintJson(const google::protobuf::Message& message);

}  // namespace tidemark::client

#endif  // TIDEMARK_CLIENT_CLI_CONNECTION_H_
