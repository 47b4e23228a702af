#include "daemon/state_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>

#include "daemon/policy.h"
#include "tests/daemon/scratch_dir.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;

Policy WithPriority(int32_t priority) {
  Policy policy = DefaultPolicy();
  policy.generation = 2;
  policy.entries["default"].priority = priority;
  return policy;
}

TEST(StateDir, KeepsPolicyAndAuditLogOverARestart) {
  ScratchDir dir;
  {
    auto state = StateDir::Open(dir / "state");
    ASSERT_TRUE(state.ok()) << state.status();
    ASSERT_TRUE(
        (*state)->SavePolicy(WithPriority(5), "uid 7 pid 9\nforged", absl::UnixEpoch()).ok());
  }
  auto state = StateDir::Open(dir / "state");
  ASSERT_TRUE(state.ok());
  EXPECT_EQ((*state)->policy().entries.at("default").priority, 5);
  EXPECT_EQ(ReadFile(dir / "state/audit.log"),
            "1970-01-01T00:00:00.000Z generation 2 by uid 7 pid 9 forged: set [default] "
            "priority=\"5\" (was \"0\")\n");
}

TEST(StateDir, NeverGivesANumberTwice) {
  ScratchDir dir;
  uint64_t last_job = 0;
  uint64_t last_start = 0;
  for (int start = 0; start < 4; ++start) {
    auto state = StateDir::Open(dir.path());
    ASSERT_TRUE(state.ok());
    EXPECT_GT((*state)->start_number(), last_start);
    last_start = (*state)->start_number();
    for (int job = 0; job < 100; ++job) {
      const uint64_t id = *(*state)->NextJobId();
      EXPECT_GT(id, last_job);
      last_job = id;
      EXPECT_TRUE((*state)->Known(id));
      EXPECT_FALSE((*state)->Known(id + 1));
    }
  }
}

TEST(StateDir, CountsJobsOnWithoutAGapAfterACleanEnd) {
  ScratchDir dir;
  for (uint64_t expected = 1; expected < 4; ++expected) {
    auto state = StateDir::Open(dir.path());
    ASSERT_TRUE(state.ok());
    EXPECT_EQ(*(*state)->NextJobId(), expected);
  }
}

TEST(StateDir, RefusesASecondDaemon) {
  ScratchDir dir;
  auto first = StateDir::Open(dir.path());
  ASSERT_TRUE(first.ok());
  auto second = StateDir::Open(dir.path());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another tidemarkd is running"));
}

TEST(StateDir, SetsACorruptFileAsideAndSaysSo) {
  ScratchDir dir;
  WriteFile(dir / "policy", "generation = 1\n[default]\nlevel = mad\n");
  WriteFile(dir / "numbers", "starts = -3\n");
  auto state = StateDir::Open(dir.path());
  ASSERT_TRUE(state.ok()) << state.status();
  ASSERT_EQ((*state)->complaints().size(), 2u);
  EXPECT_THAT((*state)->complaints()[1], HasSubstr("line 3"));
  EXPECT_THAT((*state)->complaints()[1], HasSubstr("kept as policy.corrupt"));
  EXPECT_THAT(ReadFile(dir / "policy.corrupt"), HasSubstr("mad"));
  EXPECT_EQ((*state)->policy().entries.at("default").level, Level::kNormal);
  EXPECT_GT((*state)->start_number(), 1000000u) << "beyond what counting could have reached";
}

TEST(StateDir, SaysWhyAFolderCannotBeUsed) {
  ScratchDir dir;
  WriteFile(dir / "file", "");
  const auto state = StateDir::Open(dir / "file/below");
  ASSERT_FALSE(state.ok());
  EXPECT_THAT(std::string(state.status().message()), HasSubstr(dir / "file"));
}

// Writes beyond the limit fail as they do on a full disk. Runs in a child: the limit cannot be
// undone.
int ChangeOnAFullDisk(const std::string& path) {
  auto state = StateDir::Open(path);
  if (!state.ok()) return 10;
  if (!(*state)->SavePolicy(WithPriority(5), "one", absl::UnixEpoch()).ok()) return 11;
  const std::string policy = ReadFile(path + "/policy");
  const std::string audit = ReadFile(path + "/audit.log");
  signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {audit.size() + 10, audit.size() + 10};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 12;
  Policy next = WithPriority(6);
  next.generation = 3;
  if ((*state)->SavePolicy(next, "two", absl::UnixEpoch()).ok()) return 13;
  if (!(*state)->NextJobId().ok()) return 17;  // jobs still attach
  if (ReadFile(path + "/policy") != policy) return 14;
  if (ReadFile(path + "/audit.log") != audit) return 15;
  return (*state)->policy().entries.at("default").priority == 5 ? 0 : 16;
}

TEST(StateDir, LosesNothingWhenTheDiskIsFull) {
  ScratchDir dir;
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(_exit(ChangeOnAFullDisk(dir.path())), ::testing::ExitedWithCode(0), "");
}

TEST(StateDir, LeavesThePolicyWhenTheAuditLogCannotBeWritten) {
  ScratchDir dir;
  auto state = StateDir::Open(dir.path());
  ASSERT_TRUE(state.ok());
  std::filesystem::create_directory(dir / "audit.log");
  EXPECT_FALSE((*state)->SavePolicy(WithPriority(5), "one", absl::UnixEpoch()).ok());
  EXPECT_EQ((*state)->policy().entries.at("default").priority, 0);
  EXPECT_FALSE(std::filesystem::exists(dir / "policy"));
}

}  // namespace
}  // namespace tidemark::daemon
