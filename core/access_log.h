// The last accesses of one device, as the gate saw them: which launch, on which stream, touched
// which buffer. A ring that forgets the oldest; the planner of later releases learns the iteration
// from it. Threads: none of its own; the owner serialises.

#ifndef TIDEMARK_CORE_ACCESS_LOG_H_
#define TIDEMARK_CORE_ACCESS_LOG_H_

#include "core/units.h"

namespace tidemark::core {

struct Access {
  LaunchNumber launch = 0;
  uint32_t stream = 0;  // the owner's number of the stream
  uint32_t write = 0;   // 1 when the access is known to write
  Bytes offset = 0;     // of the buffer in the arena
};

class AccessLog {
 public:
  static constexpr uint64_t kEntries = 1 << 14;

  void Add(const Access& access) { ring_[total_++ % kEntries] = access; }
  uint64_t total() const { return total_; }
  // Access number `index`, counted from 0; false when it is forgotten or has not happened.
  bool Get(uint64_t index, Access* access) const {
    if (index >= total_ || total_ - index > kEntries) return false;
    *access = ring_[index % kEntries];
    return true;
  }

 private:
  Access ring_[kEntries];
  uint64_t total_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ACCESS_LOG_H_
