// Two copy engines in simulated time, out of the device and into it: each works through its queue
// first in, first out, slower while the other is busy as well. A copy is known by its mark, the
// bytes put into its queue from the start up to its end: so the time moves on by whole queues,
// however many copies stand in them. Times in nanoseconds. Threads: none of its own.

#ifndef TIDEMARK_CORE_PLANNER_LINKS_H_
#define TIDEMARK_CORE_PLANNER_LINKS_H_

#include <algorithm>
#include <cstdint>

#include "core/step.h"

namespace tidemark::core::planner {

enum Direction : uint8_t { kOut = 0, kIn = 1 };

class Links {
 public:
  void Start(const Machine& machine);

  double now() const { return now_; }
  // What stands in the queue from now on ends at this mark.
  void PutUntil(Direction direction, double mark) { engines_[direction].put = mark; }
  bool IsDone(Direction direction, double mark) const {
    return mark <= engines_[direction].copied + kRounding;
  }
  // How long it takes until then, as things stand; 0 if it is done.
  double TimeUntilDone(Direction direction, double mark) const;
  // Bytes still to copy.
  double Backlog(Direction direction) const { return engines_[direction].Left(); }
  // How long the queue takes as things stand, if nothing is added to either.
  double TimeToDrain(Direction direction) const {
    return TimeToCopy(direction, engines_[direction].Left());
  }

  void AdvanceTo(double time) {
    while (now_ < time && IsAnyBusy()) Pass(time - now_);
    now_ = std::max(now_, time);
  }
  void AdvanceUntilDone(Direction direction, double mark);  // what ends there was put before

 private:
  static constexpr double kRounding = 1e-3;  // bytes

  struct Engine {
    double rate[2] = {};  // bytes per nanosecond, alone and while both are busy,
    double ns[2] = {};    // and nanoseconds per byte
    double put = 0;       // marks: of the end of the queue,
    double copied = 0;    // and how far it is

    bool IsBusy() const { return copied < put; }
    double Left() const { return put - copied; }
  };

  bool IsAnyBusy() const { return engines_[kOut].IsBusy() || engines_[kIn].IsBusy(); }
  bool AreBothBusy() const { return engines_[kOut].IsBusy() && engines_[kIn].IsBusy(); }
  double TimeToCopy(Direction direction, double bytes) const;
  void Pass(double most);

  double now_ = 0;
  Engine engines_[2];
};

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_LINKS_H_
