// The two pages a job shares with the daemon: policy (the daemon writes, the job can only read) and
// counters (the job writes, the daemon reads and believes nothing). Both are sealed memory files:
// no side can shrink one under the other, so that neither can make the other fault.
//
// Threads: PolicyPage::Write and CounterPage::Read under the broker's lock; the job runs beside
// them.

#ifndef TIDEMARK_DAEMON_SHARED_PAGE_H_
#define TIDEMARK_DAEMON_SHARED_PAGE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/unique_fd.h"
#include "proto/wire.h"

namespace tidemark::daemon {

// A sealed memory file and our mapping of it. Move-only owner of both.
class SharedPage {
 public:
  enum class Writer { kDaemon, kJob };

  static absl::StatusOr<SharedPage> Create(const char* name, size_t bytes, Writer writer);
  SharedPage(SharedPage&& other) noexcept;
  SharedPage& operator=(SharedPage&&) = delete;
  ~SharedPage();

  int fd() const { return fd_.get(); }
  void* data() const { return data_; }

 private:
  SharedPage(UniqueFd fd, void* data, size_t bytes);

  UniqueFd fd_;
  void* data_;
  size_t bytes_;
};

// What the daemon tells the job; see tm_wire_policy_page.
class PolicyPage {
 public:
  static absl::StatusOr<PolicyPage> Create();
  int fd() const { return page_.fd(); }
  // `content`'s magic, version and sequence are filled in here.
  void Write(tm_wire_policy_page content);

 private:
  explicit PolicyPage(SharedPage page) : page_(std::move(page)) {}
  SharedPage page_;
  uint64_t sequence_ = 0;
};

// What the job tells the daemon; see tm_wire_counters_page.
class CounterPage {
 public:
  static absl::StatusOr<CounterPage> Create();
  int fd() const { return page_.fd(); }
  // The last consistent content, made sane: gauges at most `kMostBytes`, totals that never fall. A
  // page that stays inconsistent or foreign changes nothing.
  const tm_wire_counters_page& Read();

  static constexpr uint64_t kMostBytes = uint64_t{1} << 50;

 private:
  explicit CounterPage(SharedPage page) : page_(std::move(page)) {}
  bool CopyOnce(tm_wire_counters_page* copy) const;

  SharedPage page_;
  tm_wire_counters_page last_ = {};
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_DAEMON_SHARED_PAGE_H_
