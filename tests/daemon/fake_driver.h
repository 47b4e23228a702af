// A driver table over plain counters: devices with a capacity, chunks that are empty memory files.
// Test-only; one instance at a time, because driver functions carry no context.
//
// Threads: safe; a mutex guards the counters.

#ifndef TIDEMARK_TESTS_DAEMON_FAKE_DRIVER_H_
#define TIDEMARK_TESTS_DAEMON_FAKE_DRIVER_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/driver.h"

namespace tidemark::daemon {

class FakeDriver {
 public:
  explicit FakeDriver(std::vector<uint64_t> device_bytes, uint64_t host_bytes = uint64_t{1} << 40);
  ~FakeDriver();

  const kernels::Driver& table() const { return table_; }

  // Physical chunks alive on a device; -1 is the host.
  int64_t Alive(int device);
  // Memory that something outside Tidemark takes or gives back.
  void TakeForeign(int device, int64_t bytes);
  // The n-th cuMemCreate from now fails with `code`; 0: none.
  void FailCreate(uint64_t n, CUresult code);
  void FailExports(bool fail);

 private:
  friend struct FakeCalls;
  struct Chunk {
    int device;
    uint64_t bytes;
  };

  kernels::Driver table_;
  std::mutex mutex_;
  std::map<int, int64_t> capacity_;
  std::map<int, int64_t> used_;
  std::map<uint64_t, Chunk> chunks_;
  size_t device_count_;
  uint64_t next_handle_ = 1;
  uint64_t fail_create_in_ = 0;
  CUresult fail_create_code_ = CUDA_SUCCESS;
  bool fail_exports_ = false;
};

}  // namespace tidemark::daemon

#endif  // TIDEMARK_TESTS_DAEMON_FAKE_DRIVER_H_
