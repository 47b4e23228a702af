#include "daemon/session_loop.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <filesystem>
#include <thread>

#include "tests/daemon/test_client.h"
#include "tests/daemon/test_node.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

class Serving : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = *SessionLoop::Open(path_, node_.broker.get());
    thread_ = std::thread([this] { loop_->Run([] {}); });
  }
  void TearDown() override {
    loop_->Stop();
    thread_.join();
  }
  // Polls, so that a pass is quick and only a failure waits.
  bool Eventually(const std::function<bool()>& claim) {
    const absl::Time deadline = absl::Now() + absl::Seconds(10);
    while (!claim()) {
      if (absl::Now() > deadline) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }
  uint64_t BadMessages() { return node_.broker->Snapshot().bad_messages_total; }

  TestNode node_;
  const std::string path_ = node_.dir / "job.sock";
  std::unique_ptr<SessionLoop> loop_;
  std::thread thread_;
};

TEST_F(Serving, AttachesLeasesAndDetachesOverTheSocket) {
  TestClient client(path_);
  const auto welcome = client.Ask<tm_wire_welcome>(HelloOf("train", 1));
  EXPECT_EQ(welcome.outcome, static_cast<uint32_t>(TM_WIRE_OK));
  EXPECT_EQ(welcome.header.sequence, 1u);
  EXPECT_EQ(client.fds().size(), 2u);
  const auto leased = client.Ask<tm_wire_leased>(LeaseOf(64, 64));
  EXPECT_EQ(leased.count, 64u);
  EXPECT_EQ(client.fds().size(), 64u);
  EXPECT_EQ(node_.broker->Snapshot().jobs[0].pid, static_cast<uint32_t>(getpid()));
  client.Close();
  EXPECT_TRUE(Eventually([&] { return node_.driver.Alive(0) == 0; }));
}

TEST_F(Serving, ServesManyJobsAtOnce) {
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<TestClient>(path_));
    EXPECT_NE(clients.back()->Ask<tm_wire_welcome>(HelloOf("train", 1)).job_id, 0u);
  }
  for (auto& client : clients) EXPECT_EQ(client->Ask<tm_wire_leased>(LeaseOf(8, 1)).count, 8u);
  EXPECT_EQ(node_.broker->Snapshot().devices[0].leased_bytes, 64 * kChunk);
}

TEST_F(Serving, AnswersAnOtherVersionAndCloses) {
  TestClient client(path_);
  tm_wire_hello hello = HelloOf("train", 1);
  hello.header.version = 99;
  const auto welcome = client.Ask<tm_wire_welcome>(hello);
  EXPECT_EQ(welcome.outcome, static_cast<uint32_t>(TM_WIRE_BAD_VERSION));
  EXPECT_THAT(welcome.reason, HasSubstr("wire version 99, the daemon version 1"));
  EXPECT_TRUE(client.Receive().empty());
}

TEST_F(Serving, WantsHelloFirst) {
  TestClient client(path_);
  EXPECT_EQ(client.Ask<tm_wire_leased>(LeaseOf(1, 1)).outcome,
            static_cast<uint32_t>(TM_WIRE_BAD_REQUEST));
  EXPECT_TRUE(client.Receive().empty());
}

TEST_F(Serving, ToleratesABadFieldButNotABadFrame) {
  TestClient client(path_);
  client.Ask<tm_wire_welcome>(HelloOf("train", 1));
  const auto leased = client.Ask<tm_wire_leased>(LeaseOf(65, 1));
  EXPECT_EQ(leased.outcome, static_cast<uint32_t>(TM_WIRE_BAD_REQUEST));
  EXPECT_THAT(leased.reason, HasSubstr("count 65 is out of range: 1 to 64"));
  EXPECT_EQ(client.Ask<tm_wire_leased>(LeaseOf(1, 1)).count, 1u);
  client.Send({1, 2, 3});
  EXPECT_TRUE(client.Receive().empty());
  EXPECT_TRUE(Eventually([&] { return node_.driver.Alive(0) == 0; }));
  EXPECT_EQ(BadMessages(), 2u);
}

TEST_F(Serving, DropsADatagramLongerThanAnyMessage) {
  TestClient client(path_);
  client.Ask<tm_wire_welcome>(HelloOf("train", 1));
  client.Send(std::vector<uint8_t>(kMaxDatagramBytes + 1, 0));
  EXPECT_TRUE(client.Receive().empty());
}

TEST_F(Serving, ClosesDescriptorsNobodyAskedFor) {
  TestClient client(path_);
  client.Ask<tm_wire_welcome>(HelloOf("train", 1));
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK), 0);
  UniqueFd reader(pipe_ends[0]);
  std::vector<UniqueFd> gift;
  gift.emplace_back(pipe_ends[1]);
  client.Send(BytesOf(LeaseOf(1, 1)), gift);
  EXPECT_FALSE(client.Receive().empty());
  gift.clear();
  char byte;
  EXPECT_EQ(read(reader.get(), &byte, 1), 0) << "end of file: the daemon's copy is closed";
}

TEST_F(Serving, DropsAJobThatDoesNotReadItsReplies) {
  TestClient client(path_);
  client.Ask<tm_wire_welcome>(HelloOf("train", 1));
  tm_wire_header ping = {TM_WIRE_MAGIC, TM_WIRE_VERSION, TM_WIRE_PING, sizeof(ping), 1};
  fcntl(client.fd(), F_SETFL, O_NONBLOCK);
  EXPECT_TRUE(Eventually([&] {
    client.Send(BytesOf(ping));
    return node_.broker->Snapshot().jobs.empty();
  }));
}

TEST_F(Serving, NoticesTheDeathOfAJobWhoseForkedChildKeepsTheConnection) {
  int hold[2];
  ASSERT_EQ(pipe2(hold, O_CLOEXEC), 0);
  const pid_t job = fork();
  if (job == 0) {
    close(hold[1]);
    TestClient client(path_);
    client.Ask<tm_wire_welcome>(HelloOf("train", 1));
    client.Ask<tm_wire_leased>(LeaseOf(9, 9));
    char byte;
    // The child lives until the test lets go of the pipe; the job itself ends at once.
    if (fork() == 0) _exit(static_cast<int>(read(hold[0], &byte, 1)));
    _exit(0);
  }
  int status = 0;
  waitpid(job, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(Eventually([&] { return node_.broker->Snapshot().jobs.empty(); }));
  EXPECT_EQ(node_.driver.Alive(0), 0);
  EXPECT_EQ(node_.broker->Snapshot().leases_total, 9u);
  close(hold[0]);
  close(hold[1]);
}

TEST_F(Serving, RefusesASecondDaemonOnTheSocket) {
  const auto second = SessionLoop::Open(path_, node_.broker.get());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(path_));
  EXPECT_TRUE(TestClient(path_).connected());
}

TEST(SessionLoop, NamesAPathThatIsTooLong) {
  TestNode node;
  const std::string path = node.dir / std::string(120, 'x');
  const auto loop = SessionLoop::Open(path, node.broker.get());
  EXPECT_TRUE(absl::IsInvalidArgument(loop.status()));
  EXPECT_THAT(std::string(loop.status().message()), HasSubstr("1 to 107"));
}

TEST(SessionLoop, ReplacesASocketThatADeadDaemonLeftButNoOtherFile) {
  TestNode node;
  const std::string path = node.dir / "job.sock";
  { auto dead = *SessionLoop::Open(path, node.broker.get()); }
  EXPECT_FALSE(std::filesystem::exists(path)) << "a clean end removes it";
  ASSERT_EQ(mknod(path.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_TRUE(SessionLoop::Open(path, node.broker.get()).ok());
  WriteFile(path, "precious");
  EXPECT_FALSE(SessionLoop::Open(path, node.broker.get()).ok());
  EXPECT_EQ(ReadFile(path), "precious");
}

}  // namespace
}  // namespace tidemark::daemon
