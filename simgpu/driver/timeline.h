// Virtual time of the devices: a small discrete-event simulation. Nodes enter at the host's clock,
// wait for their predecessors, then for their unit (one compute unit and three copy engines per
// device, first come first served), and end. Knows no bytes and runs nothing.
//
// Thread rule: needs the driver lock.

#ifndef SIMGPU_DRIVER_TIMELINE_H_
#define SIMGPU_DRIVER_TIMELINE_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <queue>
#include <vector>

#include "simgpu/driver/engine.h"

namespace simgpu {

struct Node;

class Timeline {
 public:
  // Enters `node` at the present; its waiting_time says how many predecessors have not ended.
  void Add(const std::shared_ptr<Node>& node);
  // Lets time pass until `seconds`, or until `node` has ended.
  void AdvanceTo(double seconds);
  void AdvanceUntil(const Node& node);
  // Until nothing is left.
  void Drain();

  double now() const { return now_; }
  size_t open() const { return open_; }
  // The node that entered first of those that have not ended; null when there is none.
  std::shared_ptr<Node> Oldest();
  double BusySeconds(Unit unit) const { return busy_[static_cast<int>(unit)]; }

 private:
  struct Server {
    std::deque<std::shared_ptr<Node>> queue;
    std::shared_ptr<Node> active;
    double remaining = 0;  // seconds at full rate
    double rate = 1;
  };
  using Device = std::array<Server, kUnits>;
  struct Timer {
    double at;
    uint64_t sequence;
    std::shared_ptr<Node> node;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : sequence > other.sequence;
    }
  };

  bool Step(double limit);
  double NextEnd() const;
  void Pass(double seconds);
  void Start(const std::shared_ptr<Node>& node);
  void End(const std::shared_ptr<Node>& node);
  void SetRates(Device& device);

  double now_ = 0;
  size_t open_ = 0;
  std::vector<Device> devices_;
  std::priority_queue<Timer> timers_;
  std::deque<std::shared_ptr<Node>> order_;
  std::array<double, kUnits> busy_{};
};

}  // namespace simgpu

#endif  // SIMGPU_DRIVER_TIMELINE_H_
