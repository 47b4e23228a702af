// The admin service over a real Unix socket and over TLS.

#include "daemon/admin_server.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "proto/tidemark/v1/admin.grpc.pb.h"
#include "tests/daemon/fake_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

class AdminServerTest : public ::testing::Test {
 protected:
  AdminServerTest() {
    char pattern[] = "/tmp/tidemark-admin-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~AdminServerTest() override { std::filesystem::remove_all(folder_); }

  std::string socket() const { return folder_ + "/admin.sock"; }

  void Start() {
    auto server = AdminServer::Start({"unix:" + socket(), "", "", "", ""}, node_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = v1::Admin::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  FakeNode node_;
  std::string folder_;
  std::unique_ptr<AdminServer> server_;
  std::unique_ptr<v1::Admin::Stub> stub_;
};

TEST_F(AdminServerTest, AnswersTheWholeNode) {
  Start();
  grpc::ClientContext context;
  v1::GetNodeResponse response;
  ASSERT_TRUE(stub_->GetNode(&context, {}, &response).ok());
  ASSERT_EQ(response.jobs_size(), 2);
  EXPECT_EQ(response.jobs(1).name(), "finetune-7b");
  EXPECT_DOUBLE_EQ(response.jobs(0).devices(0).external_fragmentation_ratio(), 0.75);
  EXPECT_DOUBLE_EQ(response.jobs(0).devices(0).stall_seconds_total(), 1.5);
  EXPECT_EQ(response.devices(0).free_bytes(), (uint64_t{3} << 30) + (uint64_t{512} << 20));
}

TEST_F(AdminServerTest, OnlyTheOwnerMayConnect) {
  Start();
  struct stat info;
  ASSERT_EQ(stat(socket().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(AdminServerTest, NamesTheCallerInTheAudit) {
  Start();
  grpc::ClientContext context;
  v1::SetPolicyRequest request;
  request.add_entries()->set_name("chargpt");
  request.mutable_entries(0)->set_priority(1);
  v1::GetPolicyResponse response;
  ASSERT_TRUE(stub_->SetPolicy(&context, request, &response).ok());
  EXPECT_EQ(response.generation(), 5u);
  EXPECT_EQ(node_.last_actor(), absl::StrCat("uid ", getuid(), " pid ", getpid()));
}

TEST_F(AdminServerTest, RefusesABadPolicyAndChangesNothing) {
  Start();
  grpc::ClientContext context;
  v1::SetPolicyRequest request;
  request.add_entries()->set_name("good");
  request.add_entries()->set_name("bad");
  request.mutable_entries(1)->set_priority(1000);
  v1::GetPolicyResponse response;
  const grpc::Status status = stub_->SetPolicy(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("priority is 1000; accepted: -100 to 100"));
  EXPECT_EQ(node_.GetPolicy().generation, 4u);
}

TEST_F(AdminServerTest, SaysThatAJobIsUnknown) {
  Start();
  grpc::ClientContext context;
  v1::GetMemoryMapRequest request;
  request.set_job_id(99);
  v1::GetMemoryMapResponse response;
  const grpc::Status status = stub_->GetMemoryMap(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "No job 99 is attached");
}

TEST_F(AdminServerTest, AStreamShowsOldEventsThenNewOnesAndEndsWithTheDaemon) {
  Start();
  grpc::ClientContext context;
  v1::WatchEventsRequest request;
  request.set_follow(true);
  request.set_after_id(2);
  auto reader = stub_->WatchEvents(&context, request);
  v1::Event event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.id(), 3u);
  node_.AddEvent("job_detached", 2, "Job 2 ended.");
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.id(), 4u);
  EXPECT_EQ(event.kind(), "job_detached");
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_FALSE(reader->Read(&event));
  EXPECT_TRUE(reader->Finish().ok());
  stopper.join();
}

TEST_F(AdminServerTest, LeavesNoSocketBehind) {
  Start();
  server_->Stop();
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(AdminServerTest, ReplacesTheSocketOfADeadDaemon) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket().c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  Start();
}

TEST_F(AdminServerTest, LeavesALiveDaemonAlone) {
  Start();
  const auto second = AdminServer::Start({"unix:" + socket(), "", "", "", ""}, node_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("Another process serves"));
  grpc::ClientContext context;
  v1::GetVersionResponse response;
  EXPECT_TRUE(stub_->GetVersion(&context, {}, &response).ok());
}

TEST_F(AdminServerTest, NeverRemovesAFileThatIsNotASocket) {
  std::ofstream(socket()) << "precious";
  EXPECT_FALSE(AdminServer::Start({"unix:" + socket(), "", "", "", ""}, node_).ok());
  EXPECT_TRUE(std::filesystem::exists(socket()));
}

TEST_F(AdminServerTest, RefusesWhatItCannotServe) {
  const struct {
    AdminOptions options;
    const char* said;
  } cases[] = {
      {{"tcp:127.0.0.1:0", "", "", "", ""}, "mutual TLS only"},
      {{"tcp:127.0.0.1", "", "a", "b", "c"}, "accepted: unix:/PATH or tcp:HOST:PORT"},
      {{"relative.sock", "", "", "", ""}, "accepted: unix:/PATH or tcp:HOST:PORT"},
      {{"unix:/" + std::string(200, 'x'), "", "", "", ""}, "accepted: at most 107"},
      {{"unix:" + socket(), "no-such-group", "", "", ""}, "group \"no-such-group\" does not exist"},
      {{"tcp:127.0.0.1:0", "", "/nonexistent", "/nonexistent", "/nonexistent"},
       "cannot be read as PEM"},
  };
  for (const auto& bad : cases) {
    const auto server = AdminServer::Start(bad.options, node_);
    ASSERT_FALSE(server.ok()) << bad.options.listen;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr(bad.said));
  }
}

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class AdminTlsTest : public AdminServerTest {
 protected:
  // One authority, a server and a client certificate signed by it.
  bool MakeCertificates() {
    const std::string script =
        absl::StrCat("cd ", folder_,
                     " && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem "
                     "-subj /CN=ca -days 2"
                     " && for n in server client; do"
                     " openssl req -newkey rsa:2048 -nodes -keyout $n.key -out $n.csr -subj /CN=$n"
                     " -addext subjectAltName=IP:127.0.0.1"
                     " && openssl x509 -req -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial "
                     "-out $n.pem -days 2"
                     " -copy_extensions copy || exit 1; done");
    return system(("( " + script + " ) >/dev/null 2>&1").c_str()) == 0;
  }

  grpc::Status Call(const std::string& target, bool with_certificate) {
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs = ReadAll(folder_ + "/ca.pem");
    if (with_certificate) {
      tls.pem_private_key = ReadAll(folder_ + "/client.key");
      tls.pem_cert_chain = ReadAll(folder_ + "/client.pem");
    }
    auto stub = v1::Admin::NewStub(grpc::CreateChannel(target, grpc::SslCredentials(tls)));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    v1::SetPolicyRequest request;
    request.add_entries()->set_name("chargpt");
    v1::GetPolicyResponse response;
    return stub->SetPolicy(&context, request, &response);
  }
};

TEST_F(AdminTlsTest, ServesOnlyClientsWithACertificate) {
  if (system("command -v openssl >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs openssl";
  ASSERT_TRUE(MakeCertificates());
  AdminOptions options;
  options.listen = "tcp:127.0.0.1:0";
  options.tls_certificate = folder_ + "/server.pem";
  options.tls_key = folder_ + "/server.key";
  options.tls_client_ca = folder_ + "/ca.pem";
  auto server = AdminServer::Start(options, node_);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_TRUE(Call((*server)->address(), true).ok());
  EXPECT_THAT(node_.last_actor(), HasSubstr("certificate client at "));
  EXPECT_FALSE(Call((*server)->address(), false).ok());
}

}  // namespace
}  // namespace tidemark::daemon
