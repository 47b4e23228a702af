// Listening, credentials and shutdown of the admin service.

#include "daemon/admin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/admin_service.h"
#include "daemon/admin_socket.h"

namespace tidemark::daemon {
namespace {

constexpr absl::string_view kTcp = "tcp:";
constexpr absl::string_view kUnix = "unix:";
constexpr std::chrono::seconds kShutdownGrace{1};

bool IsTcp(absl::string_view listen) { return absl::StartsWith(listen, kTcp); }

absl::string_view UnixPath(absl::string_view listen) {
  absl::ConsumePrefix(&listen, kUnix);
  return listen;
}

absl::Status CheckTcp(const AdminOptions& options) {
  const absl::string_view target = absl::StripPrefix(options.listen, kTcp);
  const size_t colon = target.rfind(':');
  uint32_t port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("The admin address \"", options.listen,
                     "\" is not understood; accepted: unix:/PATH or tcp:HOST:PORT"));
  }
  if (options.tls_certificate.empty() || options.tls_key.empty() || options.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The admin address \"", options.listen,
        "\" is TCP, which is served under mutual TLS only; set the certificate, the key "
        "and the client CA, or use unix:/PATH"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadPem(const std::string& what, const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().find("-----BEGIN ") == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("The admin ", what, " \"", path,
                                                   "\" cannot be read as PEM; accepted: a readable "
                                                   "PEM file"));
  }
  return text.str();
}

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MutualTls(const AdminOptions& options) {
  const absl::StatusOr<std::string> certificate = ReadPem("certificate", options.tls_certificate);
  if (!certificate.ok()) return certificate.status();
  const absl::StatusOr<std::string> key = ReadPem("key", options.tls_key);
  if (!key.ok()) return key.status();
  const absl::StatusOr<std::string> authority = ReadPem("client CA", options.tls_client_ca);
  if (!authority.ok()) return authority.status();
  grpc::SslServerCredentialsOptions tls(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  tls.pem_root_certs = *authority;
  tls.pem_key_cert_pairs.push_back({*key, *certificate});
  return grpc::SslServerCredentials(tls);
}

// TCP callers are named by their certificate.
std::string NameOfCertificate(const grpc::ServerContext& context) {
  const auto auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return context.peer();
  const std::vector<grpc::string_ref> names = auth->FindPropertyValues("x509_common_name");
  if (names.empty()) return context.peer();
  return absl::StrCat("certificate ", std::string(names[0].data(), names[0].size()), " at ",
                      context.peer());
}

class Server final : public AdminServer {
 public:
  explicit Server(Node& node)
      : service_(node, [this](const grpc::ServerContext& context) { return NameActor(context); }) {}
  ~Server() override { Stop(); }

  absl::Status Serve(const AdminOptions& options) {
    return IsTcp(options.listen) ? ServeTcp(options) : ServeUnix(options);
  }

  void Stop() override {
    if (server_ == nullptr) return;
    socket_.reset();
    service_.Shutdown();
    server_->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
    server_->Wait();
    server_.reset();
  }

  std::string address() const override { return address_; }

 private:
  absl::Status ServeTcp(const AdminOptions& options) {
    const auto credentials = MutualTls(options);
    if (!credentials.ok()) return credentials.status();
    const std::string target(absl::StripPrefix(options.listen, kTcp));
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(target, *credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_.reset();
      return absl::UnavailableError(absl::StrCat("Cannot serve the admin address \"",
                                                 options.listen,
                                                 "\": the host is not known, the port is taken or "
                                                 "not permitted, or certificate and key do "
                                                 "not belong together"));
    }
    address_ = absl::StrCat(target.substr(0, target.rfind(':')), ":", port);
    return absl::OkStatus();
  }

  absl::Status ServeUnix(const AdminOptions& options) {
    const std::string path(UnixPath(options.listen));
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC could not start the admin service");
    grpc::Server* server = server_.get();
    auto socket = AdminSocket::Listen(
        path, options.group, [server](int fd) { grpc::AddInsecureChannelFromFd(server, fd); });
    if (!socket.ok()) {
      server_.reset();
      return socket.status();
    }
    // The accept thread may already be handing connections to gRPC; calls ask for a peer's name
    // only through NameActor, which takes this lock.
    absl::MutexLock lock(&socket_mutex_);
    socket_ = *std::move(socket);
    address_ = absl::StrCat(kUnix, path);
    return absl::OkStatus();
  }

  // gRPC calls the peer of a connection that it was handed "fd:NUMBER".
  std::string NameActor(const grpc::ServerContext& context) {
    const std::string peer = context.peer();
    int fd = 0;
    if (!absl::StartsWith(peer, "fd:") || !absl::SimpleAtoi(peer.substr(3), &fd)) {
      return NameOfCertificate(context);
    }
    absl::MutexLock lock(&socket_mutex_);
    const std::string name = socket_ == nullptr ? std::string() : socket_->PeerOf(fd);
    return name.empty() ? "unknown peer of the Unix socket" : name;
  }

  AdminService service_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex socket_mutex_;
  std::unique_ptr<AdminSocket> socket_;
  std::string address_;
};

}  // namespace

absl::Status CheckAdminOptions(const AdminOptions& options) {
  if (IsTcp(options.listen)) return CheckTcp(options);
  const absl::string_view path = UnixPath(options.listen);
  if (absl::StartsWith(path, "/")) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("The admin address \"", options.listen,
                   "\" is not understood; accepted: unix:/PATH or tcp:HOST:PORT"));
}

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const AdminOptions& options,
                                                                Node& node) {
  if (absl::Status status = CheckAdminOptions(options); !status.ok()) return status;
  auto server = std::make_unique<Server>(node);
  if (absl::Status status = server->Serve(options); !status.ok()) return status;
  return server;
}

}  // namespace tidemark::daemon
