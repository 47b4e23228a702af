// Implementation of tests/bench/allocator/floors.h. Threads: none.

#include "tests/bench/allocator/floors.h"

#include <algorithm>
#include <deque>

namespace tidemark::bench {
namespace {

using replay::Bytes;

// The most that one process had live during its last `window` events.
class Recent {
 public:
  void Apply(Bytes bytes, bool allocate, size_t window) {
    live_ = allocate ? live_ + bytes : live_ - bytes;
    ++event_;
    while (!falling_.empty() && falling_.back().live <= live_) falling_.pop_back();
    falling_.push_back({event_, live_});
    while (falling_.front().event + window < event_) falling_.pop_front();
  }
  Bytes most() const { return falling_.empty() ? 0 : falling_.front().live; }

 private:
  struct Point {
    size_t event;
    Bytes live;
  };
  Bytes live_ = 0;
  size_t event_ = 0;
  std::deque<Point> falling_;  // each the most since the one before
};

Bytes Sum(const replay::Trace& trace, const std::vector<size_t>& windows) {
  std::vector<Recent> processes(windows.size());
  Bytes now = 0;
  Bytes peak = 0;
  for (const replay::Event& event : trace.events) {
    const replay::BlockInfo& block = trace.blocks[event.block];
    Recent& process = processes[block.process];
    now -= process.most();
    process.Apply(block.bytes, event.allocate, windows[block.process]);
    now += process.most();
    peak = std::max(peak, now);
  }
  return peak;
}

}  // namespace

Bytes SumOfPeaks(const replay::Trace& trace) {
  return Sum(trace, std::vector<size_t>(trace.processes(), trace.events.size()));
}

Bytes SumOfRecentPeaks(const replay::Trace& trace, size_t share) {
  std::vector<size_t> windows(trace.processes());
  for (const replay::Event& event : trace.events) ++windows[trace.blocks[event.block].process];
  for (size_t& window : windows) window /= share;
  return Sum(trace, windows);
}

}  // namespace tidemark::bench
