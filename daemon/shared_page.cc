#include "daemon/shared_page.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1; older libc headers lack it
#endif

namespace tidemark::daemon {
namespace {

constexpr int kReadTries = 16;

// Pages are copied word by word with atomic accesses: the other side writes while we read.
void StoreWords(void* to, const void* from, size_t first_word, size_t words) {
  auto* target = static_cast<uint64_t*>(to);
  const auto* source = static_cast<const uint64_t*>(from);
  for (size_t i = first_word; i < words; ++i) {
    __atomic_store_n(&target[i], source[i], __ATOMIC_RELEASE);
  }
}

void LoadWords(void* to, const void* from, size_t words) {
  auto* target = static_cast<uint64_t*>(to);
  const auto* source = static_cast<const uint64_t*>(from);
  for (size_t i = 0; i < words; ++i) target[i] = __atomic_load_n(&source[i], __ATOMIC_ACQUIRE);
}

uint64_t PageRounded(size_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

absl::Status Failure(const char* what) {
  return absl::ErrnoToStatus(errno, absl::StrCat("making a page to share with a job: ", what));
}

static_assert(sizeof(tm_wire_policy_page) % 8 == 0 && sizeof(tm_wire_counters_page) % 8 == 0);
static_assert(offsetof(tm_wire_policy_page, sequence) == 8);
static_assert(offsetof(tm_wire_counters_page, sequence) == 8);

// Within tm_wire_counters_device: gauges come first, then totals, all uint64_t.
constexpr size_t kGauges = offsetof(tm_wire_counters_device, moved_out_bytes_total) / 8;
constexpr size_t kDeviceWords = sizeof(tm_wire_counters_device) / 8;

void Sanitize(const tm_wire_counters_device& last, tm_wire_counters_device* next) {
  auto* words = reinterpret_cast<uint64_t*>(next);
  const auto* before = reinterpret_cast<const uint64_t*>(&last);
  for (size_t i = 0; i < kGauges; ++i) words[i] = std::min(words[i], CounterPage::kMostBytes);
  for (size_t i = kGauges; i < kDeviceWords; ++i) words[i] = std::max(words[i], before[i]);
}

}  // namespace

SharedPage::SharedPage(UniqueFd fd, void* data, size_t bytes)
    : fd_(std::move(fd)), data_(data), bytes_(bytes) {}

SharedPage::SharedPage(SharedPage&& other) noexcept
    : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

SharedPage::~SharedPage() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

absl::StatusOr<SharedPage> SharedPage::Create(const char* name, size_t bytes, Writer writer) {
  const uint64_t rounded = PageRounded(bytes);
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return Failure("memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(rounded)) != 0) return Failure("ftruncate");
  const int access = writer == Writer::kDaemon ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, rounded, access, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return Failure("mmap");
  SharedPage page(std::move(fd), data, rounded);
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  // Our writable mapping exists already; after this seal nobody can make another.
  if (writer == Writer::kDaemon) seals |= F_SEAL_FUTURE_WRITE;
  if (fcntl(page.fd(), F_ADD_SEALS, seals) != 0) return Failure("F_ADD_SEALS");
  return page;
}

absl::StatusOr<PolicyPage> PolicyPage::Create() {
  absl::StatusOr<SharedPage> page = SharedPage::Create(
      "tidemark-policy", sizeof(tm_wire_policy_page), SharedPage::Writer::kDaemon);
  if (!page.ok()) return page.status();
  return PolicyPage(*std::move(page));
}

void PolicyPage::Write(tm_wire_policy_page content) {
  auto* shared = static_cast<tm_wire_policy_page*>(page_.data());
  content.magic = TM_WIRE_MAGIC;
  content.version = TM_WIRE_PAGE_VERSION;
  content.sequence = sequence_ + 1;
  __atomic_store_n(&shared->sequence, sequence_ + 1, __ATOMIC_RELEASE);
  StoreWords(shared, &content, 0, 1);
  StoreWords(shared, &content, 2, sizeof(content) / 8);
  sequence_ += 2;
  __atomic_store_n(&shared->sequence, sequence_, __ATOMIC_RELEASE);
}

absl::StatusOr<CounterPage> CounterPage::Create() {
  absl::StatusOr<SharedPage> page = SharedPage::Create(
      "tidemark-counters", sizeof(tm_wire_counters_page), SharedPage::Writer::kJob);
  if (!page.ok()) return page.status();
  return CounterPage(*std::move(page));
}

bool CounterPage::CopyOnce(tm_wire_counters_page* copy) const {
  const auto* shared = static_cast<const tm_wire_counters_page*>(page_.data());
  const uint64_t before = __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE);
  if (before % 2 != 0) return false;
  LoadWords(copy, shared, sizeof(*copy) / 8);
  return __atomic_load_n(&shared->sequence, __ATOMIC_ACQUIRE) == before;
}

const tm_wire_counters_page& CounterPage::Read() {
  tm_wire_counters_page next;
  bool consistent = false;
  for (int i = 0; i < kReadTries && !consistent; ++i) consistent = CopyOnce(&next);
  if (!consistent || next.magic != TM_WIRE_MAGIC || next.version != TM_WIRE_PAGE_VERSION) {
    return last_;
  }
  for (int i = 0; i < TM_WIRE_MAX_DEVICES; ++i) Sanitize(last_.device[i], &next.device[i]);
  next.daemon_round_trips_total =
      std::max(next.daemon_round_trips_total, last_.daemon_round_trips_total);
  next.reconnects_total = std::max(next.reconnects_total, last_.reconnects_total);
  last_ = next;
  return last_;
}

}  // namespace tidemark::daemon
