// The real tidemarkd process over a fake driver library: start, signals, death, restart, bad
// starts.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <functional>

#include "tests/daemon/test_client.h"
#include "tests/daemon/test_node.h"
#include "tests/daemon/tidemarkd_process.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kOk = TM_WIRE_OK;

class Tidemarkd : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"--socket",
                                          socket_,
                                          "--state_dir",
                                          dir_ / "state",
                                          "--admin_listen",
                                          "unix:" + (dir_ / "admin.sock"),
                                          "--libcuda",
                                          FAKE_LIBCUDA,
                                          "--metrics_listen",
                                          "",
                                          "--device_reserve_bytes",
                                          "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  void Start(std::vector<std::string> more = {}) {
    daemon_ = std::make_unique<Process>(Arguments(std::move(more)), log_, notify_.path());
    ASSERT_THAT(notify_.Next(), HasSubstr("READY=1")) << ReadFile(log_);
  }

  // Runs a start that must fail; returns what it said.
  std::string Refused(std::vector<std::string> arguments, int status) {
    const std::string log = dir_ / "refused.log";
    std::filesystem::remove(log);
    EXPECT_EQ(Process(std::move(arguments), log, "").Wait(), status);
    const std::string said = ReadFile(log);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    return said;
  }

  ScratchDir dir_;
  const std::string socket_ = dir_ / "job.sock";
  const std::string log_ = dir_ / "log";
  NotifySocket notify_{dir_ / "notify"};
  std::unique_ptr<Process> daemon_;
};

// A process that attaches, leases the whole device, says so, and then only waits to be killed.
pid_t StartVictim(const std::string& socket) {
  int ready[2];
  EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    TestClient client(socket);
    client.Ask<tm_wire_welcome>(HelloOf("victim", 1));
    const auto leased = client.Ask<tm_wire_leased>(LeaseOf(32, 32));
    if (write(ready[1], &leased.count, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char count = 0;
  EXPECT_EQ(read(ready[0], &count, 1), 1);
  EXPECT_EQ(count, 32);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

TEST_F(Tidemarkd, SaysWhatItServesAndEndsCleanlyOnSigterm) {
  Start();
  EXPECT_THAT(ReadFile(log_), HasSubstr("serves Fake 0 (64 MiB)"));
  TestClient job(socket_);
  EXPECT_EQ(job.Ask<tm_wire_welcome>(HelloOf("train", 1)).outcome, kOk);
  daemon_->Kill(SIGTERM);
  EXPECT_EQ(notify_.Next(), "STOPPING=1");
  EXPECT_EQ(daemon_->Wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(socket_));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "admin.sock"));
}

TEST_F(Tidemarkd, GivesEverythingToOthersWhenAJobIsKilled) {
  Start();
  const pid_t victim = StartVictim(socket_);
  TestClient heir(socket_);
  heir.Ask<tm_wire_welcome>(HelloOf("heir", 1));
  EXPECT_EQ(heir.Ask<tm_wire_leased>(LeaseOf(1, 1)).count, 0u);
  kill(victim, SIGKILL);
  waitpid(victim, nullptr, 0);
  EXPECT_TRUE(Eventually([&] { return heir.Ask<tm_wire_leased>(LeaseOf(32, 32)).count == 32; }));
}

TEST_F(Tidemarkd, TakesItsJobsBackAfterItWasKilled) {
  Start();
  uint64_t id = 0;
  std::vector<uint64_t> held;
  {
    TestClient job(socket_);
    id = job.Ask<tm_wire_welcome>(HelloOf("train", 1)).job_id;
    const auto leased = job.Ask<tm_wire_leased>(LeaseOf(20, 20));
    ASSERT_EQ(leased.count, 20u);
    held.assign(leased.chunk_id, leased.chunk_id + 20);
    daemon_->Kill(SIGKILL);
    EXPECT_EQ(daemon_->Wait(), -SIGKILL);
    EXPECT_TRUE(job.Receive().empty()) << "the job notices";
  }
  Start();
  TestClient newcomer(socket_);
  EXPECT_NE(newcomer.Ask<tm_wire_welcome>(HelloOf("new", 1)).job_id, id);
  TestClient job(socket_);
  EXPECT_EQ(job.Ask<tm_wire_welcome>(HelloOf("train", 1, id)).job_id, id);
  EXPECT_EQ(job.Ask<tm_wire_done>(ChunksOf(TM_WIRE_ADOPT, held)).count, 20u);
  const auto rest = newcomer.Ask<tm_wire_leased>(LeaseOf(32, 1));
  EXPECT_EQ(rest.count, 12u) << "what the job holds is not handed out again";
  for (uint32_t i = 0; i < rest.count; ++i) {
    EXPECT_EQ(std::count(held.begin(), held.end(), rest.chunk_id[i]), 0) << "ids are never reused";
  }
  EXPECT_EQ(job.Ask<tm_wire_done>(ChunksOf(TM_WIRE_RETURN, held)).outcome, kOk);
  EXPECT_EQ(newcomer.Ask<tm_wire_leased>(LeaseOf(20, 20)).count, 20u);
}

TEST_F(Tidemarkd, RefusesToRunTwice) {
  Start();
  EXPECT_THAT(Refused(Arguments(), 1), HasSubstr("another tidemarkd is running"));
  EXPECT_THAT(Refused(Arguments({}), 1), HasSubstr(dir_ / "state"));
  std::vector<std::string> elsewhere = Arguments();
  elsewhere[3] = dir_ / "state2";
  EXPECT_THAT(Refused(elsewhere, 1), HasSubstr(socket_));
  TestClient job(socket_);
  EXPECT_EQ(job.Ask<tm_wire_welcome>(HelloOf("train", 1)).outcome, kOk) << "the first serves on";
}

TEST_F(Tidemarkd, NamesWhatIsWrongWithABadStart) {
  std::vector<std::string> arguments = Arguments();
  arguments[1] = dir_ / std::string(120, 'x');
  EXPECT_THAT(Refused(arguments, 1), HasSubstr("1 to 107"));
  arguments = Arguments();
  arguments[7] = "/nowhere/libcuda.so.1";
  EXPECT_THAT(Refused(arguments, 1), HasSubstr("TIDEMARK_LIBCUDA"));
  EXPECT_THAT(Refused({"--colour", "blue"}, 2), HasSubstr("--colour"));
  EXPECT_THAT(Refused(Arguments({"--max_jobs", "none"}), 2), HasSubstr("\"none\""));
  EXPECT_THAT(Refused(Arguments({"--admin_listen", "x"}), 2), HasSubstr("given twice"));
  EXPECT_FALSE(std::filesystem::exists(socket_));
}

TEST_F(Tidemarkd, ServesWithDefaultsWhenItsPolicyFileIsCorrupt) {
  std::filesystem::create_directory(dir_ / "state");
  WriteFile(dir_ / "state/policy", "???");
  Start();
  EXPECT_THAT(ReadFile(log_), HasSubstr("kept as policy.corrupt and defaults are in force"));
}

TEST_F(Tidemarkd, ReloadsWhatMayChangeOnSighup) {
  const std::string file = dir_ / "conf";
  WriteFile(file, "max_jobs = 1\n");
  Start({"--config", file});
  TestClient first(socket_);
  EXPECT_EQ(first.Ask<tm_wire_welcome>(HelloOf("a", 1)).outcome, kOk);
  EXPECT_THAT(TestClient(socket_).Ask<tm_wire_welcome>(HelloOf("b", 1)).reason,
              HasSubstr("max_jobs 1"));
  WriteFile(file, "max_jobs = 2\nchunk_bytes = 4MiB\n");
  daemon_->Kill(SIGHUP);
  EXPECT_TRUE(
      Eventually([&] { return ReadFile(log_).find("settings reloaded") != std::string::npos; }));
  EXPECT_THAT(ReadFile(log_), HasSubstr("a restart is needed for chunk_bytes"));
  TestClient second(socket_);
  EXPECT_EQ(second.Ask<tm_wire_welcome>(HelloOf("b", 1)).outcome, kOk);
  WriteFile(file, "max_jobs = many\n");
  daemon_->Kill(SIGHUP);
  EXPECT_TRUE(
      Eventually([&] { return ReadFile(log_).find("reload refused") != std::string::npos; }));
  EXPECT_EQ(second.Ask<tm_wire_leased>(LeaseOf(1, 1)).count, 1u) << "it serves on";
}

TEST_F(Tidemarkd, RefusesAForeignUserWithASentence) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  Start();
  const std::string said = dir_ / "said";
  WriteFile(said, "");
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(said, std::filesystem::perms(0666));
  const pid_t stranger = fork();
  if (stranger == 0) {
    if (setuid(65534) != 0) _exit(2);
    TestClient client(socket_);
    const auto welcome = client.Ask<tm_wire_welcome>(HelloOf("stranger", 1));
    WriteFile(said, welcome.reason);
    _exit(welcome.outcome == TM_WIRE_REFUSED ? 0 : 1);
  }
  int status = 0;
  waitpid(stranger, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_THAT(ReadFile(said), HasSubstr("uid 65534 may not attach"));
}

TEST_F(Tidemarkd, ChecksAndPrintsItsSettingsWithoutServing) {
  const std::string out = dir_ / "out";
  EXPECT_EQ(Process(Arguments({"--check-config"}), out, "").Wait(), 0);
  EXPECT_EQ(Process(Arguments({"--print-config"}), out, "").Wait(), 0);
  EXPECT_EQ(Process({"--version"}, out, "").Wait(), 0);
  EXPECT_THAT(ReadFile(out), HasSubstr("the settings are accepted"));
  EXPECT_THAT(ReadFile(out), HasSubstr("\nsocket = " + socket_));
  EXPECT_THAT(ReadFile(out), HasSubstr("wire version 1"));
  EXPECT_FALSE(std::filesystem::exists(dir_ / "state"));
}

}  // namespace
}  // namespace tidemark::daemon
