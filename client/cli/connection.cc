// The way to tidemarkd's admin service; see connection.h. Threads: one.

#include "client/cli/connection.h"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tidemark::client {
namespace {

// Where tidemarkd puts its sockets by default; the same rule as in daemon/config.cc.
std::string RuntimeFolder() {
  if (geteuid() == 0) return "/run/tidemark";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime != '\0') return absl::StrCat(runtime, "/tidemark");
  return absl::StrCat("/tmp/tidemark-", getuid(), "/tidemark");
}

}  // namespace

std::string AdminAddress(const Invocation& call) {
  std::string address = call.value("--admin");
  const char* variable = std::getenv("TIDEMARK_ADMIN");
  if (address.empty() && variable != nullptr) address = variable;
  if (address.empty()) address = absl::StrCat("unix:", RuntimeFolder(), "/admin.sock");
  if (absl::StartsWith(address, "/")) return absl::StrCat("unix:", address);
  if (absl::StartsWith(address, "tcp:")) return address.substr(4);
  return address;
}

std::string DefaultSocket() { return absl::StrCat(RuntimeFolder(), "/tidemarkd.sock"); }

std::unique_ptr<v1::Admin::Stub> Connect(const Invocation& call) {
  grpc::ChannelArguments arguments;
  // A Unix socket's path is no host name.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  return v1::Admin::NewStub(
      grpc::CreateCustomChannel(AdminAddress(call), grpc::InsecureChannelCredentials(), arguments));
}

std::unique_ptr<grpc::ClientContext> Deadline(absl::Duration timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  return context;
}

int Report(const Invocation& call, const grpc::Status& status) {
  const bool unreachable = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (unreachable) {
    absl::FPrintF(
        stderr,
        "tidemark: tidemarkd does not answer on %s; start it, or name its address with --admin or "
        "$TIDEMARK_ADMIN (`tidemark doctor` looks for the cause)\n",
        AdminAddress(call));
    return kUnreachable;
  }
  absl::FPrintF(stderr, "tidemark: %s\n", status.error_message());
  return status.error_code() == grpc::StatusCode::INVALID_ARGUMENT ? kUsage : kFailed;
}

int PrintJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  if (!status.ok()) {
    absl::FPrintF(stderr, "tidemark: the answer could not be written as JSON: %s\n",
                  std::string(status.message()));
    return kFailed;
  }
  absl::PrintF("%s", text);
  return kOk;
}

}  // namespace tidemark::client
