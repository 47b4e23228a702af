// Every verb as a user calls it, against a fixed fake node that is served in-process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli/doctor.h"
#include "client/cli/verb.h"
#include "daemon/admin_server.h"
#include "tests/daemon/fake_node.h"
#include "tests/golden/golden.h"

namespace tidemark::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Said {
  int status;
  std::string out;
  std::string err;
};

// Times in `events` are local.
const bool kUtc = setenv("TZ", "UTC", 1) == 0;

Said Call(const std::vector<std::string>& words) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = Main(words);
  Said said{status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
  return said;
}

class Verbs : public ::testing::Test {
 protected:
  Verbs() {
    char pattern[] = "/tmp/tidemark-cli-XXXXXX";
    folder_ = mkdtemp(pattern);
    address_ = "unix:" + folder_ + "/admin.sock";
    daemon::AdminOptions options;
    options.listen = address_;
    server_ = *daemon::AdminServer::Start(options, node_);
  }
  ~Verbs() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  Said Ask(std::vector<std::string> words) {
    words.insert(words.begin(), {"--admin", address_});
    return Call(words);
  }
  void ExpectText(const std::string& golden, std::vector<std::string> words) {
    const Said said = Ask(std::move(words));
    EXPECT_EQ(said.status, kOk) << said.err;
    EXPECT_EQ(said.err, "") << "data goes to stdout, and nothing else is said on success";
    ExpectGolden("cli/" + golden + ".txt", said.out);
  }

  daemon::FakeNode node_;
  std::string folder_;
  std::string address_;
  std::unique_ptr<daemon::AdminServer> server_;
};

TEST_F(Verbs, PrintTheNodeAsText) {
  ExpectText("status", {"status"});
  ExpectText("jobs", {"jobs"});
  ExpectText("map", {"map", "chargpt"});
  ExpectText("top", {"top", "--once"});
  ExpectText("policy", {"policy", "get"});
  ExpectText("explain", {"policy", "explain", "1"});
  ExpectText("events", {"events"});
}

TEST_F(Verbs, PrintExactBytesAsJson) {
  const Said said = Ask({"jobs", "--format", "json"});
  EXPECT_EQ(said.status, kOk);
  EXPECT_THAT(said.out, StartsWith("{"));
  EXPECT_THAT(said.out, HasSubstr("\"leased_bytes\": \"1073741824\""));
  ExpectGolden("cli/snapshot.json", Ask({"snapshot"}).out);
}

TEST_F(Verbs, ChangeOnlyTheGivenFieldsOfThePolicy) {
  const Said said = Ask({"policy", "set", "chargpt", "--priority", "-7"});
  EXPECT_EQ(said.status, kOk) << said.err;
  const daemon::PolicyEntry entry = node_.GetPolicy().entries.at("chargpt");
  EXPECT_EQ(entry.priority, -7);
  EXPECT_EQ(entry.device_budget_bytes, uint64_t{3} << 30);
}

TEST_F(Verbs, ApplyWhatGetPrinted) {
  const std::string path = folder_ + "/policy.json";
  std::ofstream(path) << Ask({"policy", "get", "--format", "json"}).out;
  const daemon::Policy before = node_.GetPolicy();
  const Said said = Ask({"policy", "apply", path});
  EXPECT_EQ(said.status, kOk) << said.err;
  const daemon::Policy after = node_.GetPolicy();
  ASSERT_EQ(after.entries.size(), before.entries.size());
  EXPECT_EQ(after.entries.at("chargpt").movable_classes,
            before.entries.at("chargpt").movable_classes);
  EXPECT_EQ(after.entries.at("chargpt").guarantee_bytes,
            before.entries.at("chargpt").guarantee_bytes);
  EXPECT_EQ(after.entries.at("default").min_size_bytes,
            before.entries.at("default").min_size_bytes);
}

TEST_F(Verbs, PassOnTheDaemonsSentence) {
  const Said refused = Ask({"policy", "set", "chargpt", "--priority", "1000"});
  EXPECT_NE(refused.status, kOk);
  EXPECT_THAT(refused.err, HasSubstr("1000"));
  const Said unknown = Ask({"map", "99"});
  EXPECT_EQ(unknown.status, kFailed);
  EXPECT_THAT(unknown.err, HasSubstr("No job 99 is attached"));
  EXPECT_EQ(unknown.out, "");
}

TEST_F(Verbs, MoveAndPin) {
  const Said evicted = Ask({"evict", "1", "64MiB"});
  EXPECT_EQ(evicted.status, kOk) << evicted.err;
  EXPECT_THAT(evicted.out, HasSubstr("asked to evict"));
  EXPECT_THAT(Ask({"prefetch", "chargpt", "1TiB"}).out, HasSubstr("all it can move"));
  EXPECT_EQ(Ask({"pin", "chargpt"}).status, kOk);
  EXPECT_TRUE(node_.pinned());
  EXPECT_EQ(Ask({"pin", "chargpt", "--off"}).status, kOk);
  EXPECT_FALSE(node_.pinned());
}

TEST_F(Verbs, SayHowToReachADaemonThatIsNotThere) {
  server_.reset();
  for (const char* verb : {"status", "jobs", "events", "snapshot"}) {
    const Said said = Ask({verb});
    EXPECT_EQ(said.status, kUnreachable) << verb;
    EXPECT_EQ(said.out, "") << verb;
    EXPECT_THAT(said.err, HasSubstr("does not answer on " + address_));
  }
}

TEST(CommandLine, SaysWhatTcpNeeds) {
  const Said said = Call({"--admin", "tcp:localhost:1", "--tls-ca=/nonexistent", "status"});
  EXPECT_EQ(said.status, kUnreachable);
  EXPECT_THAT(said.err, HasSubstr("--tls-ca or $TIDEMARK_TLS_CA names no readable PEM file"));
}

TEST(CommandLine, HelpOfEveryVerb) {
  ExpectGolden("cli/help/tidemark.txt", Call({"--help"}).out);
  for (const Verb* verb : client::Verbs()) {
    const Said said = Call({verb->name, "--help"});
    EXPECT_EQ(said.status, kOk);
    EXPECT_EQ(Call({"help", verb->name}).out, said.out);
    ExpectGolden(std::string("cli/help/") + verb->name + ".txt", said.out);
  }
}

TEST(CommandLine, HelpFitsATerminal) {
  for (const Verb* verb : client::Verbs()) {
    std::istringstream text(HelpOf(*verb));
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST(CommandLine, WhatIsWrongIsOneSentenceWithASuggestion) {
  const struct {
    std::vector<std::string> words;
    const char* said;
  } cases[] = {
      {{"statsu"}, "did you mean status?"},
      {{"frobnicate"}, "there is no verb 'frobnicate'"},
      {{"run", "--bugdet", "1GiB", "--", "true"}, "--budget"},
      {{"run"}, "COMMAND"},
      {{"map"}, "JOB"},
      {{"status", "--format", "xml"}, "xml"},
      {{"run", "--budget", "lots", "--", "true"}, "'lots' is not an amount of memory"},
      {{"top", "--interval", "0"}, "0.1 to 3600"},
      {{"policy", "set", "x", "--level", "hot"}, "off, normal and aggressive"},
      {{"completion", "tcsh"}, "bash, zsh and fish"},
  };
  for (const auto& bad : cases) {
    const Said said = Call(bad.words);
    EXPECT_EQ(said.status, kUsage) << bad.words[0];
    EXPECT_THAT(said.err, HasSubstr(bad.said));
    EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 1) << said.err;
    EXPECT_EQ(said.out, "");
  }
}

TEST(CommandLine, NoVerbShowsTheOverviewAndFails) {
  const Said said = Call({});
  EXPECT_EQ(said.status, kUsage);
  EXPECT_EQ(said.err, Overview());
}

TEST(CommandLine, CompletionKnowsEveryVerb) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = Call({"completion", shell}).out;
    for (const Verb* verb : client::Verbs()) EXPECT_THAT(script, HasSubstr(verb->name)) << shell;
  }
}

TEST(CommandLine, CompletionKeepsApostrophesAndColonsOfTheHelp) {
  EXPECT_THAT(Call({"completion", "zsh"}).out,
              AllOf(HasSubstr("print a shell'\\''s completion script"),
                    HasSubstr("what happened on the node\\: jobs")));
  EXPECT_THAT(
      Call({"completion", "fish"}).out,
      AllOf(HasSubstr("print a shell\\'s completion script"), HasSubstr("unix:PATH or HOST:PORT")));
}

// What bash offers after `words`, the last of which is being typed.
std::string Offered(const std::string& words) {
  const std::string script = Call({"completion", "bash"}).out;
  const std::string program = script +
                              "\ntidemark() { printf 'JOB NAME\\n1 train\\n2 other\\n'; }\n" +
                              "COMP_WORDS=(tidemark " + words +
                              "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tidemark; "
                              "echo \"${COMPREPLY[*]}\"";
  setenv("COMPLETION", program.c_str(), 1);
  FILE* shell = popen("bash -c \"$COMPLETION\"", "r");
  char text[4096] = {};
  const size_t length = fread(text, 1, sizeof(text) - 1, shell);
  EXPECT_EQ(pclose(shell), 0);
  return std::string(text, length);
}

TEST(CommandLine, BashCompletesVerbsFlagsValuesAndJobs) {
  EXPECT_EQ(Offered("sta"), "status\n");
  EXPECT_EQ(Offered("map tr"), "train\n");
  EXPECT_THAT(Offered("policy ''"), StartsWith("get set apply explain --level"));
  EXPECT_EQ(Offered("policy set x --level a"), "aggressive\n");
  EXPECT_EQ(Offered("status --format ''"), "text json\n");
  EXPECT_EQ(Offered("completion ''").substr(0, 14), "bash zsh fish ");
  EXPECT_EQ(Offered("run --bud"), "--budget\n");
  EXPECT_EQ(Offered("run -- --bud"), "\n") << "the job's own words";
}

std::string Report(const Facts& facts) {
  std::string out;
  for (const Finding& finding : Examine(facts)) {
    const char* words[] = {"good     ", "warning  ", "bad      "};
    out += words[static_cast<int>(finding.verdict)] + finding.sentence + "\n";
  }
  return out;
}

Facts HealthyWorld() {
  Facts facts;
  facts.preload_path = "/usr/lib/tidemark/libtidemark_preload.so";
  facts.driver_path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1";
  facts.driver_version = 13000;
  facts.devices = facts.devices_with_vmm = facts.devices_with_host_vmm = 2;
  facts.admin_address = "unix:/run/tidemark/admin.sock";
  facts.daemon_answers = true;
  facts.daemon_version = facts.own_version = "0.1.0";
  facts.memlock_bytes = UINT64_MAX;
  facts.open_files = 1 << 20;
  facts.host_available_bytes = uint64_t{64} << 30;
  facts.shm_bytes = uint64_t{8} << 30;
  return facts;
}

TEST(Doctor, HealthyAndSickWorlds) {
  Facts sick = HealthyWorld();
  sick.preload_error = "libcuda.so.1: wrong ELF class";
  sick.devices_with_host_vmm = 1;
  sick.daemon_answers = false;
  sick.memlock_bytes = 8 << 20;
  sick.open_files = 1024;
  sick.host_available_bytes = uint64_t{1} << 30;
  sick.shm_bytes = 1 << 20;
  Facts old = HealthyWorld();
  old.driver_version = 11040;
  old.daemon_version = "0.0.9";
  Facts empty = HealthyWorld();
  empty.preload_path = empty.driver_path = "";
  ExpectGolden("cli/doctor.txt", "healthy:\n" + Report(HealthyWorld()) + "\nsick:\n" +
                                     Report(sick) + "\nold:\n" + Report(old) + "\nempty:\n" +
                                     Report(empty));
}

TEST(Doctor, AHealthyWorldHasNoComplaint) {
  for (const Finding& finding : Examine(HealthyWorld())) {
    EXPECT_EQ(finding.verdict, Verdict::kGood) << finding.sentence;
  }
}

}  // namespace
}  // namespace tidemark::client
