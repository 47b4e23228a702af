// The way to tidemarkd's admin service; see connection.h. Threads: one.

#include "client/cli/connection.h"

#include <google/protobuf/util/json_util.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/sockets.h"
#include "proto/address.h"

namespace tidemark::client {
namespace {

struct TlsFile {
  const char* flag;
  const char* variable;
};
constexpr TlsFile kAuthority = {"--tls-ca", "TIDEMARK_TLS_CA"};
constexpr TlsFile kCertificate = {"--tls-certificate", "TIDEMARK_TLS_CERTIFICATE"};
constexpr TlsFile kKey = {"--tls-key", "TIDEMARK_TLS_KEY"};

// The content of the file that flag or variable names; "" when there is none.
std::string Pem(const Invocation& call, const TlsFile& file) {
  const char* variable = std::getenv(file.variable);
  const std::string path = call.value(file.flag, variable == nullptr ? "" : variable);
  std::ostringstream text;
  if (std::ifstream stream(path); stream) text << stream.rdbuf();
  return text.str();
}

// What TCP lacks, as the end of a sentence; "" for a Unix socket and when all is there.
std::string MissingForTcp(const Invocation& call) {
  if (absl::StartsWith(AdminAddress(call), "unix:")) return "";
  for (const TlsFile& file : {kAuthority, kCertificate, kKey}) {
    if (Pem(call, file).empty()) {
      return absl::StrCat("; TCP is served under mutual TLS, and ", file.flag, " or $",
                          file.variable, " names no readable PEM file");
    }
  }
  return "";
}

// Where else a daemon was looked for when nobody named an address.
std::string NorTheNodes(const Invocation& call) {
  const std::string node = absl::StrCat("unix:", proto::kSystemFolder, proto::kAdminSocket);
  const bool named = call.has("--admin") || std::getenv("TIDEMARK_ADMIN") != nullptr;
  return named || AdminAddress(call) == node ? "" : absl::StrCat(", nor on ", node);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const Invocation& call) {
  if (absl::StartsWith(AdminAddress(call), "unix:")) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  tls.pem_root_certs = Pem(call, kAuthority);
  tls.pem_cert_chain = Pem(call, kCertificate);
  tls.pem_private_key = Pem(call, kKey);
  return grpc::SslCredentials(tls);
}

}  // namespace

std::string AdminAddress(const Invocation& call) {
  std::string address = call.value("--admin");
  const char* variable = std::getenv("TIDEMARK_ADMIN");
  if (address.empty() && variable != nullptr) address = variable;
  if (address.empty()) address = absl::StrCat("unix:", AdminSocket());
  if (absl::StartsWith(address, "/")) return absl::StrCat("unix:", address);
  if (absl::StartsWith(address, "tcp:")) return address.substr(4);
  return address;
}

std::string WhyBarred(const std::string& address) {
  const std::string path = address.substr(0, 5) == "unix:" ? address.substr(5) : "";
  if (Knock(path, SOCK_STREAM) != Door::kBarred) return "";
  return absl::StrCat("user ", geteuid(), " may not use tidemarkd's admin socket ", path,
                      "; ask its owner to name a group of yours in admin_group (jobs need only "
                      "allow_uids)");
}

std::unique_ptr<v1::Admin::Stub> Connect(const Invocation& call) {
  const std::string address = AdminAddress(call);
  grpc::ChannelArguments arguments;
  // A Unix socket's path is no host name; over TCP the name is checked against the certificate.
  if (absl::StartsWith(address, "unix:")) {
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  }
  return v1::Admin::NewStub(grpc::CreateCustomChannel(address, Credentials(call), arguments));
}

std::unique_ptr<grpc::ClientContext> Deadline(absl::Duration timeout) {
  auto context = std::make_unique<grpc::ClientContext>();
  context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  return context;
}

int Report(const Invocation& call, const grpc::Status& status) {
  const std::string missing = MissingForTcp(call);
  const bool unreachable = !missing.empty() ||
                           status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                           status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (const std::string barred = WhyBarred(AdminAddress(call)); unreachable && !barred.empty()) {
    absl::FPrintF(stderr, "tidemark: %s\n", barred);
    return kFailed;
  }
  if (unreachable) {
    absl::FPrintF(
        stderr,
        "tidemark: tidemarkd does not answer on %s%s%s; start it, or name its address with "
        "--admin or "
        "$TIDEMARK_ADMIN (`tidemark doctor` looks for the cause)\n",
        AdminAddress(call), NorTheNodes(call), missing);
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
