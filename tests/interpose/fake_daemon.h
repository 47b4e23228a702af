// A daemon of the test's own behind a Unix socket: answers HELLO, LEASE, RETURN and ADOPT in a
// thread with chunks it creates, and writes the policy page. It can go away and come back, and it
// counts.
//
// Threads: its own; the test reads the atomics and changes the policy.

#ifndef TIDEMARK_TESTS_INTERPOSE_FAKE_DAEMON_H_
#define TIDEMARK_TESTS_INTERPOSE_FAKE_DAEMON_H_

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/units.h"
#include "proto/datagram.h"
#include "proto/wire.h"
#include "tests/interpose/counted_driver.h"

namespace tidemark::interpose {

class FakeDaemon {
 public:
  FakeDaemon() {
    char folder[] = "/tmp/tidemark-fake-XXXXXX";
    EXPECT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/s";
    policy_fd_ = Page(sizeof(tm_wire_policy_page), &policy_);
    counters_fd_ = Page(sizeof(tm_wire_counters_page), &counters_);
    policy_->magic = TM_WIRE_MAGIC;
    policy_->version = TM_WIRE_PAGE_VERSION;
    policy_->level = TM_WIRE_LEVEL_NORMAL;
    policy_->movable_classes = ~uint64_t{0};
    Listen();
  }
  ~FakeDaemon() {
    Die();
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }

  void SetBudgets(core::Bytes device, core::Bytes host) {
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
    policy_->device[0] = {device, host};
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
  }
  void SetMinSize(core::Bytes bytes) {
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
    policy_->min_size_bytes = bytes;
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
  }
  void SetMovableClasses(uint64_t bits) {
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
    policy_->movable_classes = bits;
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
  }
  void RequestEvict(core::Bytes bytes) {
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
    policy_->evict_request_bytes += bytes;
    __atomic_store_n(&policy_->sequence, policy_->sequence + 1, __ATOMIC_SEQ_CST);
  }
  void Die() {
    shutdown(listener_, SHUT_RDWR);
    const int client = client_.exchange(-1);
    if (client >= 0) shutdown(client, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listener_);
    unlink(path_.c_str());
  }
  void ComeBack() { Listen(); }

  const std::string& path() const { return path_; }
  std::atomic<int> leased{0};  // chunks out
  std::atomic<int> adopted{0};
  std::atomic<int> requests{0};
  std::atomic<uint64_t> resumed{0};

 private:
  template <typename T>
  static int Page(size_t bytes, T** page) {
    const int fd = memfd_create("page", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
    *page = static_cast<T*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    return fd;
  }
  void Listen() {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    strcpy(address.sun_path, path_.c_str());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(listener_, 4), 0);
    thread_ = std::thread([this] { Serve(); });
  }
  void Serve() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    client_ = client;
    std::vector<char> buffer(65536);
    for (ssize_t got; (got = recv(client, buffer.data(), buffer.size(), 0)) > 0;) {
      ++requests;
      Answer(client, buffer.data());
    }
    close(client);
  }
  template <typename T>
  static T As(const char* bytes) {
    T message;
    memcpy(&message, bytes, sizeof(message));
    return message;
  }
  void Answer(int client, const char* bytes) {
    const auto header = As<tm_wire_header>(bytes);
    if (header.type == TM_WIRE_HELLO) {
      resumed = As<tm_wire_hello>(bytes).resume_job_id;
      tm_wire_welcome welcome = {};
      welcome.job_id = 42;
      welcome.device_count = 1;
      welcome.chunk_bytes = core::kChunkBytes;
      return Send(client, header, TM_WIRE_WELCOME, &welcome, {policy_fd_, counters_fd_});
    }
    if (header.type == TM_WIRE_LEASE) return Grant(client, header, As<tm_wire_lease>(bytes));
    const auto chunks = As<tm_wire_chunks>(bytes);
    if (header.type == TM_WIRE_RETURN) leased -= static_cast<int>(chunks.count);
    if (header.type == TM_WIRE_ADOPT) adopted += static_cast<int>(chunks.count);
    tm_wire_done done = {};
    Send(client, header, TM_WIRE_DONE, &done, {});
  }
  void Grant(int client, const tm_wire_header& header, const tm_wire_lease& lease) {
    tm_wire_leased reply = {};
    std::vector<int> fds;
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = lease.place == TM_WIRE_DEVICE ? CU_MEM_LOCATION_TYPE_DEVICE
                                                       : CU_MEM_LOCATION_TYPE_HOST_NUMA;
    for (uint32_t i = 0; i < lease.count; ++i) {
      CUmemGenericAllocationHandle handle;
      int fd = -1;
      EXPECT_EQ(real_driver.cuMemCreate(&handle, core::kChunkBytes, &prop, 0), CUDA_SUCCESS);
      EXPECT_EQ(real_driver.cuMemExportToShareableHandle(
                    &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
                CUDA_SUCCESS);
      real_driver.cuMemRelease(handle);
      reply.chunk_id[reply.count++] = next_id_++;
      fds.push_back(fd);
    }
    leased += static_cast<int>(lease.count);
    Send(client, header, TM_WIRE_LEASED, &reply, fds);
    for (int fd : fds) close(fd);
  }
  template <typename T>
  static void Send(int client, const tm_wire_header& request, uint16_t type, T* reply,
                   const std::vector<int>& fds) {
    reply->header = {TM_WIRE_MAGIC, TM_WIRE_VERSION, type, sizeof(T), request.sequence};
    proto::SendDatagram(client, reply, sizeof(T), fds.data(), static_cast<uint32_t>(fds.size()));
  }

  std::string folder_, path_;
  int listener_ = -1;
  std::atomic<int> client_{-1};
  int policy_fd_ = -1, counters_fd_ = -1;
  tm_wire_policy_page* policy_ = nullptr;
  tm_wire_counters_page* counters_ = nullptr;
  uint64_t next_id_ = 1;
  std::thread thread_;
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_TESTS_INTERPOSE_FAKE_DAEMON_H_
