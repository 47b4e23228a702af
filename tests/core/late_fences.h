// Fences of frees in flight, as the shim keeps them (interpose/stream_book.h): what is freed waits
// for the open fence. It is closed when somebody wants bytes freed behind it, and has passed once
// the work given to the device until then is done: so many requests later here, for the host runs
// ahead. What nobody wants never passes. Threads: one.

#ifndef TIDEMARK_TESTS_CORE_LATE_FENCES_H_
#define TIDEMARK_TESTS_CORE_LATE_FENCES_H_

#include <deque>

#include "core/units.h"

namespace tidemark::core {

class LateFences {
 public:
  explicit LateFences(uint64_t requests_late) : late_(requests_late) {}

  // For what is freed now.
  FenceId open() const { return open_; }
  // A request is about to come. Returns what has passed.
  FenceId Poll() {
    ++requests_;
    while (!closed_.empty() && closed_.front().done_at <= requests_) {
      passed_ = closed_.front().fence;
      closed_.pop_front();
    }
    return passed_;
  }
  // Work given from now on waits for `fence`.
  void Order(FenceId fence) {
    if (fence >= open_) closed_.push_back({open_++, requests_ + late_});
  }
  // The host waits for all work. Returns what has passed.
  FenceId Settle() {
    closed_.clear();
    return passed_ = open_++;
  }

 private:
  struct Closed {
    FenceId fence = 0;
    uint64_t done_at = 0;
  };
  uint64_t late_;
  uint64_t requests_ = 0;
  FenceId open_ = 1;
  FenceId passed_ = 0;
  std::deque<Closed> closed_;  // not yet passed, oldest first
};

}  // namespace tidemark::core

#endif  // TIDEMARK_TESTS_CORE_LATE_FENCES_H_
