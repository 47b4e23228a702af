// The whole of /metrics from a fixed node, as text and over HTTP.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "daemon/metrics_families.h"
#include "daemon/metrics_server.h"
#include "tests/daemon/fake_node.h"
#include "tests/golden/golden.h"

namespace tidemark::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Serialize(const NodeSnapshot& snapshot, JobLabels* labels) {
  labels->Update(snapshot.jobs);
  return prometheus::TextSerializer().Serialize(CollectFamilies(snapshot, *labels, {13000}));
}

std::string Serialize(const NodeSnapshot& snapshot) {
  JobLabels labels;
  return Serialize(snapshot, &labels);
}

JobSnapshot Named(uint64_t id, const std::string& name) {
  JobSnapshot job;
  job.id = id;
  job.name = name;
  return job;
}

TEST(Metrics, ShowsEveryFamilyOfAFixedNode) {
  FakeNode node;
  ExpectGolden("metrics.txt", Serialize(node.Snapshot()));
}

TEST(Metrics, PromtoolFindsNothingToSay) {
  if (system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "needs promtool, from Debian's package prometheus";
  }
  const std::string command = "promtool check metrics < " + GoldenPath("metrics.txt") + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said(4096, '\0');
  said.resize(fread(said.data(), 1, said.size(), pipe));
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(said, "");
}

TEST(Metrics, NamesAllFamiliesBeforeAnyJobAttaches) {
  FakeNode node;
  node.SetJobs({});
  const std::string text = Serialize(node.Snapshot());
  EXPECT_THAT(text, HasSubstr("\ntidemark_jobs 0\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE tidemark_job_moved_bytes_total counter"));
}

TEST(Metrics, DeviceStatesSumToTheCapacity) {
  FakeNode node;
  for (const DeviceSnapshot& device : node.Snapshot().devices) {
    EXPECT_EQ(device.leased_bytes + device.pooled_bytes + device.foreign_bytes + device.free_bytes,
              device.total_bytes);
  }
}

TEST(Metrics, KeepsJobsOfOneNameApartForTheirWholeLife) {
  NodeSnapshot snapshot;
  JobLabels labels;
  snapshot.jobs = {Named(7, "train"), Named(9, "train")};
  Serialize(snapshot, &labels);
  EXPECT_EQ(labels.Of(7), "train");
  EXPECT_EQ(labels.Of(9), "train-9");

  snapshot.jobs = {Named(9, "train")};
  Serialize(snapshot, &labels);
  EXPECT_EQ(labels.Of(9), "train-9") << "a living job's counters may not change their name";

  snapshot.jobs = {Named(9, "train"), Named(12, "train"), Named(13, "train-9")};
  Serialize(snapshot, &labels);
  EXPECT_EQ(labels.Of(12), "train");
  EXPECT_EQ(labels.Of(13), "train-9-13");
}

TEST(Metrics, NeverShowsAByteThatWouldSpoilTheScrape) {
  NodeSnapshot snapshot;
  snapshot.jobs = {Named(1, "caf\xe9\n\"x\""), Named(2, "")};
  const std::string text = Serialize(snapshot);
  EXPECT_THAT(text, HasSubstr("job=\"caf__\\\"x\\\"\""));
  EXPECT_THAT(text, HasSubstr("job=\"unnamed\""));
  EXPECT_THAT(text, Not(HasSubstr("\xe9")));
}

TEST(Metrics, RatiosAreZeroBeforeAnythingIsReserved) {
  NodeSnapshot snapshot;
  snapshot.devices.resize(1);
  snapshot.devices[0].uuid = "GPU-a";
  snapshot.jobs = {Named(1, "new")};
  snapshot.jobs[0].devices.resize(1);
  const std::string text = Serialize(snapshot);
  EXPECT_THAT(text, HasSubstr("peak_utilisation_ratio{gpu=\"GPU-a\",job=\"new\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("external_fragmentation_ratio{gpu=\"GPU-a\",job=\"new\"} 0\n"));
}

std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n");
    EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    char block[4096];
    for (ssize_t n; (n = read(fd, block, sizeof(block))) > 0;) answer.append(block, n);
  }
  close(fd);
  return answer;
}

TEST(MetricsServer, AnswersAScrape) {
  FakeNode node;
  auto server = MetricsServer::Start("127.0.0.1:0", node);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string answer = HttpGet((*server)->port(), "/metrics");
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("\ntidemark_up 1\n"));
}

TEST(MetricsServer, RefusesAnAddressInASentence) {
  FakeNode node;
  for (const char* listen : {"", "9477", "127.0.0.1:99999", "127.0.0.1:http"}) {
    const auto server = MetricsServer::Start(listen, node);
    ASSERT_FALSE(server.ok());
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("accepted: HOST:PORT"));
  }
}

TEST(MetricsServer, SaysThatAPortIsTaken) {
  FakeNode node;
  auto first = MetricsServer::Start("127.0.0.1:0", node);
  ASSERT_TRUE(first.ok());
  const auto second = MetricsServer::Start(absl::StrCat("127.0.0.1:", (*first)->port()), node);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("is taken or not permitted"));
}

}  // namespace
}  // namespace tidemark::daemon
