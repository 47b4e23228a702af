// A Node with fixed content: two GPUs, two jobs, three events. What admin, metrics and CLI tests
// show. Requests are recorded, not acted on.

#ifndef TIDEMARK_TESTS_DAEMON_FAKE_NODE_H_
#define TIDEMARK_TESTS_DAEMON_FAKE_NODE_H_

#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "daemon/node.h"

namespace tidemark::daemon {

class FakeNode : public Node {
 public:
  FakeNode();

  NodeSnapshot Snapshot() override;
  absl::StatusOr<std::vector<ChunkRun>> MemoryMap(uint64_t job_id) override;
  Policy GetPolicy() override;
  absl::StatusOr<Policy> ChangePolicy(const PolicyChange& change) override;
  absl::StatusOr<std::vector<std::string>> ExplainPolicy(uint64_t job_id) override;
  absl::StatusOr<uint64_t> RequestEvict(uint64_t job_id, uint64_t bytes) override;
  absl::StatusOr<uint64_t> RequestPrefetch(uint64_t job_id, uint64_t bytes) override;
  absl::Status SetPinned(uint64_t job_id, bool pinned) override;
  std::vector<Event> EventsAfter(uint64_t after_id) override;
  void WaitForEvent(uint64_t after_id, absl::Duration timeout) override;
  std::string DriverPath() override { return "/usr/lib/x86_64-linux-gnu/libcuda.so.1"; }
  int DriverVersion() override { return 13000; }

  void AddEvent(const std::string& kind, uint64_t job_id, const std::string& sentence);
  void SetJobs(std::vector<JobSnapshot> jobs);
  std::string last_actor();
  bool pinned();

 private:
  absl::Status CheckJob(uint64_t job_id);

  absl::Mutex mutex_;
  NodeSnapshot snapshot_ ABSL_GUARDED_BY(mutex_);
  Policy policy_ ABSL_GUARDED_BY(mutex_);
  std::vector<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::string last_actor_ ABSL_GUARDED_BY(mutex_);
  bool pinned_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_FAKE_NODE_H_
