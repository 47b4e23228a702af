// How many bytes a job holds from launch to launch, and so how many it will hold in the launches to
// come if they are as those of the last iteration. A guess: whoever relies on it moves more than he
// had to, or waits.
//
// Not here: when an iteration repeats (core/iteration.h). Threads: the device's lock is held.

#ifndef TIDEMARK_INTERPOSE_DEMAND_H_
#define TIDEMARK_INTERPOSE_DEMAND_H_

#include <stdint.h>

#include "core/units.h"

namespace tidemark::interpose {

class Demand {
 public:
  // A launch begins, the `launch`th, while `bytes` are allocated.
  void Begin(core::LaunchNumber launch, core::Bytes bytes) {
    now_ = launch;
    At(launch) = 0;
    Note(bytes);
  }
  // Allocated now, after it grew.
  void Note(core::Bytes bytes) {
    const auto chunks = static_cast<uint32_t>((bytes + core::kChunkBytes - 1) / core::kChunkBytes);
    if (chunks > At(now_)) At(now_) = chunks;
  }

  // The most chunks' worth of bytes that the job holds in launches [first, last] from now, the
  // present one being 0, if they are as one `period` before. kUnknown: too long ago.
  static constexpr uint32_t kUnknown = ~uint32_t{0};
  uint32_t Most(core::LaunchNumber first, core::LaunchNumber last, uint32_t period) const {
    if (period == 0 || period >= kLog || last >= period || now_ < period) return kUnknown;
    uint32_t most = 0;
    for (core::LaunchNumber i = now_ - period + first; i <= now_ - period + last; ++i) {
      if (log_[i % kLog] > most) most = log_[i % kLog];
    }
    return most;
  }

 private:
  static constexpr uint32_t kLog = 1 << 14;
  uint32_t& At(core::LaunchNumber launch) { return log_[launch % kLog]; }

  core::LaunchNumber now_ = 0;
  uint32_t log_[kLog] = {};
};

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_DEMAND_H_
