// A broker over the fake driver with a clock that tests turn, and jobs that speak to it directly.

#ifndef TIDEMARK_TESTS_DAEMON_TEST_NODE_H_
#define TIDEMARK_TESTS_DAEMON_TEST_NODE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "daemon/broker.h"
#include "tests/daemon/fake_driver.h"
#include "tests/daemon/scratch_dir.h"

namespace tidemark::daemon {

inline constexpr uint64_t kChunk = 2 << 20;

inline tm_wire_hello HelloOf(const std::string& name, uint32_t devices, uint64_t resume = 0) {
  tm_wire_hello hello = {};
  hello.header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, TM_WIRE_HELLO, sizeof(hello), 1};
  hello.pid = 1;
  hello.device_count = devices;
  for (uint32_t i = 0; i < devices; ++i) std::memset(hello.device_uuid[i], 0x40 + i, 16);
  hello.resume_job_id = resume;
  std::strncpy(hello.job_name, name.c_str(), sizeof(hello.job_name) - 1);
  return hello;
}

inline tm_wire_lease LeaseOf(uint32_t count, uint32_t at_least, uint32_t place = TM_WIRE_DEVICE,
                             uint32_t device = 0) {
  tm_wire_lease lease = {};
  lease.header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, TM_WIRE_LEASE, sizeof(lease), 2};
  lease.device = device;
  lease.place = place;
  lease.count = count;
  lease.at_least = at_least;
  return lease;
}

inline tm_wire_chunks ChunksOf(tm_wire_type type, const std::vector<uint64_t>& chunks,
                               uint32_t place = TM_WIRE_DEVICE, uint32_t device = 0) {
  tm_wire_chunks message = {};
  message.header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, static_cast<uint16_t>(type), sizeof(message),
                    3};
  message.device = device;
  message.place = place;
  message.count = static_cast<uint32_t>(chunks.size());
  message.last = 1;
  std::copy(chunks.begin(), chunks.end(), message.chunk_id);
  return message;
}

inline tm_wire_share ShareOf(tm_wire_type type, uint8_t token, const std::vector<uint64_t>& chunks,
                             uint32_t count) {
  tm_wire_share message = {};
  message.header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, static_cast<uint16_t>(type), sizeof(message),
                    4};
  message.count = count;
  message.total = count;
  std::memset(message.token, token, sizeof(message.token));
  std::copy(chunks.begin(), chunks.end(), message.chunk_id);
  return message;
}

template <typename Message>
Message MessageIn(const std::vector<uint8_t>& bytes) {
  Message message = {};
  std::memcpy(&message, bytes.data(), std::min(bytes.size(), sizeof(message)));
  return message;
}

struct TestNode {
  explicit TestNode(std::vector<uint64_t> device_bytes = {64 * kChunk},
                    BrokerOptions options = NoReserve(), uint64_t host_bytes = uint64_t{1} << 40)
      : driver(device_bytes, host_bytes) {
    Start(std::move(options));
  }

  static BrokerOptions NoReserve() {
    BrokerOptions options;
    options.device_reserve_bytes = 0;
    options.host_budget_bytes = 64 * kChunk;
    options.allow_every_uid = true;
    return options;
  }

  // A new daemon on the same state folder, as after a crash.
  void Start(BrokerOptions options) {
    broker.reset();
    state.reset();
    state = *StateDir::Open(dir.path());
    Hardware hardware;
    hardware.driver = &driver.table();
    hardware.driver_path = "/fake/libcuda.so.1";
    hardware.devices = *ListDevices(driver.table());
    hardware.chunk_bytes = kChunk;
    Surroundings world;
    world.now = [this] { return now; };
    world.host_memory = [this] { return host; };
    if (used) world.used_bytes = used;
    broker = std::make_unique<Broker>(hardware, state.get(), std::move(options), world);
  }

  ScratchDir dir;
  FakeDriver driver;
  std::unique_ptr<StateDir> state;
  absl::Time now = absl::UnixEpoch() + absl::Hours(1);
  std::function<std::optional<uint64_t>(uint32_t device)> used;
  HostMemory host = {uint64_t{64} << 30, uint64_t{32} << 30, UINT64_MAX};
  std::unique_ptr<Broker> broker;
};

// A job that remembers what it was given.
class TestJob {
 public:
  TestJob(TestNode* node, const std::string& name, uid_t uid = 1000, uint64_t resume = 0,
          uint32_t pid = 0)
      : node_(node) {
    const tm_wire_hello hello =
        HelloOf(name, static_cast<uint32_t>(node->broker->Snapshot().devices.size()), resume);
    const Peer peer{pid != 0 ? pid : ++pids, uid};
    reply_ = node->broker->Hello(peer, hello.header, hello, &attachment_);
    welcome = MessageIn<tm_wire_welcome>(reply_.bytes);
    if (welcome.outcome != TM_WIRE_OK) return;
    policy_ =
        mmap(nullptr, sizeof(tm_wire_policy_page), PROT_READ, MAP_SHARED, reply_.fds[0].get(), 0);
    counters_ = mmap(nullptr, sizeof(tm_wire_counters_page), PROT_READ | PROT_WRITE, MAP_SHARED,
                     reply_.fds[1].get(), 0);
  }
  ~TestJob() {
    if (policy_ != nullptr) munmap(policy_, sizeof(tm_wire_policy_page));
    if (counters_ != nullptr) munmap(counters_, sizeof(tm_wire_counters_page));
  }
  TestJob(const TestJob&) = delete;
  TestJob& operator=(const TestJob&) = delete;

  uint64_t id() const { return welcome.job_id; }
  const tm_wire_policy_page& policy() const {
    return *static_cast<const tm_wire_policy_page*>(policy_);
  }
  tm_wire_counters_page* counters() { return static_cast<tm_wire_counters_page*>(counters_); }
  uint64_t budget_chunks(uint32_t device = 0) const {
    return policy().device[device].budget_bytes / kChunk;
  }

  tm_wire_leased Lease(uint32_t count, uint32_t at_least, uint32_t place = TM_WIRE_DEVICE,
                       uint32_t device = 0) {
    const tm_wire_leased leased = Ask<tm_wire_leased>(LeaseOf(count, at_least, place, device));
    auto& mine = place == TM_WIRE_DEVICE ? held : host_held;
    mine.insert(mine.end(), leased.chunk_id, leased.chunk_id + leased.count);
    return leased;
  }
  tm_wire_done Return(const std::vector<uint64_t>& chunks, uint32_t place = TM_WIRE_DEVICE,
                      uint32_t device = 0) {
    return Ask<tm_wire_done>(ChunksOf(TM_WIRE_RETURN, chunks, place, device));
  }
  // Gives the last `count` device chunks back.
  void GiveBack(size_t count) {
    const std::vector<uint64_t> last(held.end() - static_cast<long>(count), held.end());
    held.resize(held.size() - count);
    Return(last);
  }
  tm_wire_done Adopt(const std::vector<uint64_t>& chunks, uint32_t place = TM_WIRE_DEVICE) {
    return Ask<tm_wire_done>(ChunksOf(TM_WIRE_ADOPT, chunks, place));
  }
  void Die(bool reap = true) {
    node_->broker->Detach(attachment_, "it was killed");
    while (reap && node_->broker->Reap()) {
    }
  }

  template <typename Answer, typename Message>
  Answer Ask(const Message& message) {
    Request request;
    request.header = message.header;
    request.body = message;
    reply_ = node_->broker->Serve(attachment_, request);
    return MessageIn<Answer>(reply_.bytes);
  }
  const Reply& reply() const { return reply_; }

  tm_wire_welcome welcome = {};
  std::vector<uint64_t> held;
  std::vector<uint64_t> host_held;

 private:
  static inline uint32_t pids = 100;
  TestNode* node_;
  Attachment attachment_;
  Reply reply_;
  void* policy_ = nullptr;
  void* counters_ = nullptr;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_TEST_NODE_H_
