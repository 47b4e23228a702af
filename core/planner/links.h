// Two copy engines in simulated time, out of the device and into it: each works through its queue
// first in, first out, slower while the other is busy as well. Whoever drives it moves the time on
// and puts copies in once they may start. Times in nanoseconds. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_LINKS_H_
#define TIDEMARK_CORE_PLANNER_LINKS_H_

#include <cstdint>

#include "core/array.h"
#include "core/step.h"
#include "core/units.h"

namespace tidemark::core::planner {

enum Direction : uint8_t { kOut = 0, kIn = 1 };

class Links {
 public:
  void Start(const Machine& machine);

  double now() const { return now_; }
  // The number of the copy in its direction, counted from 0; kNoMemoryLeft at the end of memory.
  static constexpr uint32_t kNoMemoryLeft = ~uint32_t{0};
  uint32_t Put(Direction direction, Bytes bytes);
  bool IsDone(Direction direction, uint32_t copy) const { return copy < done_[direction]; }
  // Bytes still to copy, of the head of the queue as well.
  double Backlog(Direction direction) const { return backlog_[direction]; }
  // How long the queue takes as things stand, if nothing is added to either.
  double TimeToDrain(Direction direction) const;

  void AdvanceTo(double time);
  void AdvanceUntilDone(Direction direction, uint32_t copy);  // the copy was put before

 private:
  double NextEvent() const;  // time until the first of the heads is done; infinite when idle
  void Pass(double duration);
  double Rate(Direction direction) const;

  double now_ = 0;
  double alone_[2] = {};   // bytes per nanosecond
  double duplex_[2] = {};  // while both are busy
  Array<Bytes> queue_[2];  // all copies ever put
  uint32_t done_[2] = {};
  double head_left_[2] = {};
  double backlog_[2] = {};
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_LINKS_H_
