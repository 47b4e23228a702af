#include "daemon/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/scratch_dir.h"
#include "tests/golden/golden.h"

namespace tidemark::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}
const Environment kBare = Variables({});

absl::StatusOr<Config> Load(const std::vector<std::string>& arguments,
                            const Environment& environment = kBare) {
  const absl::StatusOr<CommandLine> line = ParseCommandLine(arguments, environment);
  if (!line.ok()) return line.status();
  return LoadConfig(*line, 0, environment);
}

TEST(Config, PrefersFlagOverVariableOverFileOverDefault) {
  ScratchDir dir;
  const std::string file = dir / "conf";
  WriteFile(file, "max_jobs = 1 # few\npool_idle_seconds = 1\nhost_budget_bytes = 1GiB\n");
  const auto config =
      Load({"--config", file, "--max_jobs=3"},
           Variables({{"TIDEMARKD_MAX_JOBS", "2"}, {"TIDEMARKD_POOL_IDLE_SECONDS", "2"}}));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->broker.max_jobs, 3u);
  EXPECT_EQ(config->broker.pool_idle, absl::Seconds(2));
  EXPECT_EQ(config->broker.host_budget_bytes, uint64_t{1} << 30);
  EXPECT_EQ(config->chunk_bytes, uint64_t{2} << 20);
}

std::string Refusal(const std::vector<std::string>& arguments,
                    const Environment& environment = kBare) {
  const absl::StatusOr<Config> config = Load(arguments, environment);
  EXPECT_FALSE(config.ok());
  return std::string(config.status().message());
}

TEST(Config, NamesTheBadSettingItsValueAndWhatIsAccepted) {
  EXPECT_THAT(Refusal({"--colour", "blue"}), HasSubstr("no flag \"--colour\""));
  EXPECT_THAT(Refusal({"stray"}), HasSubstr("no flag \"stray\""));
  EXPECT_THAT(Refusal({"--socket"}), HasSubstr("--socket needs a value"));
  EXPECT_THAT(Refusal({"--max_jobs", "1", "--max_jobs", "2"}), HasSubstr("given twice"));
  EXPECT_THAT(Refusal({"--max_jobs", "0"}), HasSubstr("\"0\" is not accepted; it takes a whole"));
  EXPECT_THAT(Refusal({"--chunk_bytes", "3MiB"}), HasSubstr("2MiB, 4MiB"));
  EXPECT_THAT(Refusal({"--socket", "relative"}), HasSubstr("an absolute path"));
  EXPECT_THAT(Refusal({"--metrics_listen", "localhost"}), HasSubstr("HOST:PORT"));
  EXPECT_THAT(Refusal({"--allow_uids", "bob"}), HasSubstr("user ids"));
  EXPECT_THAT(Refusal({}, Variables({{"TIDEMARKD_MAX_JOBS", "many"}})),
              HasSubstr("TIDEMARKD_MAX_JOBS: \"many\""));
  EXPECT_THAT(Refusal({"--config", "/nowhere/conf"}), HasSubstr("/nowhere/conf cannot be read"));
}

TEST(Config, NamesTheLineOfABadFile) {
  ScratchDir dir;
  const std::string file = dir / "conf";
  WriteFile(file, "# fine\nmax_jobs = 1\ncolour = blue\n");
  EXPECT_THAT(Refusal({"--config", file}),
              HasSubstr("conf line 3: there is no setting \"colour\""));
  WriteFile(file, "max_jobs = 1\nmax_jobs = 1\n");
  EXPECT_THAT(Refusal({"--config", file}), HasSubstr("line 2: max_jobs appears twice"));
  WriteFile(file, "max_jobs\n");
  EXPECT_THAT(Refusal({"--config", file}), HasSubstr("has no \"= value\""));
}

TEST(Config, PrintsAFileThatItReadsBack) {
  const auto config = Load({"--allow_uids", "7 9", "--device_reserve_bytes", "3GiB", "--libcuda",
                            "/opt/cuda#13/libcuda.so.1", "--metrics_listen", ""});
  ASSERT_TRUE(config.ok()) << config.status();
  const Config defaults = DefaultConfig(0, kBare);
  const std::string text = ConfigText(*config, defaults);
  Config read = defaults;
  ASSERT_TRUE(ApplyConfigText(text, &read).ok());
  EXPECT_EQ(ConfigText(read, defaults), text);
  EXPECT_THAT(text, HasSubstr("\nallow_uids = 7 9\n"));
  EXPECT_THAT(text, HasSubstr("\n#max_jobs = 256\n"));
}

TEST(Config, IsDeployedAsTheTableWritesIt) {
  const Config defaults = DefaultConfig(0, kBare);
  EXPECT_EQ(ReadFile(TIDEMARK_DEPLOYED_CONFIG), ConfigText(defaults, defaults))
      << "write it anew as root: tidemarkd --print-config > deploy/tidemarkd.conf";
}

TEST(Config, IsExplainedByHelp) {
  ExpectGolden("tidemarkd_help.txt", HelpText(DefaultConfig(0, kBare)));
}

TEST(Config, PutsAUsersFilesIntoTheUsersFolders) {
  const Config config =
      DefaultConfig(7, Variables({{"XDG_RUNTIME_DIR", "/run/user/7"}, {"HOME", "/home/bob"}}));
  EXPECT_EQ(config.socket, "/run/user/7/tidemark/tidemarkd.sock");
  EXPECT_EQ(config.state_dir, "/home/bob/.local/state/tidemark");
  EXPECT_EQ(config.admin.listen, "unix:/run/user/7/tidemark/admin.sock");
}

TEST(Config, NamesWhatOnlyARestartChanges) {
  Config running = DefaultConfig(0, kBare);
  Config loaded = running;
  loaded.broker.max_jobs = 5;
  loaded.socket = "/elsewhere";
  EXPECT_THAT(NeedRestart(running, loaded), ElementsAre("socket"));
}

}  // namespace
}  // namespace tidemark::daemon
