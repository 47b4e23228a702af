// What every allocator of the scoreboard is to the replay: a device with a capacity, shared by the
// allocators of all processes on it, and one allocator per process. Physical memory is what the
// allocators hold from the device, in use or cached.
//
// Not here: traces (tests/replay), the measurements (measure.h). Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_POLICY_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_POLICY_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/replay/trace.h"

namespace tidemark::bench {

using replay::BlockId;
using replay::Bytes;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;
inline constexpr Bytes kNoLimit = Bytes{1} << 50;

constexpr Bytes RoundUp(Bytes value, Bytes multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Policy;

class Device {
 public:
  explicit Device(Bytes capacity) : capacity_(capacity) {}

  // False: the capacity does not allow it.
  bool Take(Bytes bytes) {
    if (bytes > capacity_ - held_) return false;
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return true;
  }
  void Give(Bytes bytes) { held_ -= bytes; }

  Bytes left() const { return capacity_ - held_; }
  Bytes held() const { return held_; }
  Bytes peak() const { return peak_; }

  std::vector<Policy*> sharers;

 private:
  Bytes capacity_;
  Bytes held_ = 0;
  Bytes peak_ = 0;
};

struct Usage {
  Bytes requested = 0;
  Bytes allocated = 0;     // after rounding
  Bytes free_held = 0;     // held from the device and not allocated
  Bytes largest_free = 0;  // the largest request of it that needs no call of the driver
};

class Policy {
 public:
  virtual ~Policy() = default;
  // False: out of memory, after everything that this allocator does about it.
  virtual bool Allocate(BlockId id, Bytes bytes, uint32_t stream) = 0;
  // The free is complete: no work in flight touches the block, on any stream.
  virtual void Free(BlockId id) = 0;
  virtual Usage usage() const = 0;
  // 2 MiB chunks mapped since the beginning, or bytes of segments asked from the driver in such.
  virtual uint64_t mapped_chunks() const = 0;
  // Gives up to `bytes` of unused memory back for another process, and how much that could be.
  // Only Tidemark's does.
  virtual void Release(Bytes bytes) { (void)bytes; }
  virtual Bytes Releasable() { return 0; }
};

struct PolicyKind {
  std::string name;
  std::function<std::unique_ptr<Policy>(Device*)> make;
};

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_POLICY_H_
