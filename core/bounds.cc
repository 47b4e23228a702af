#include "core/bounds.h"

#include <algorithm>

#include "core/bounds/window_bound.h"
#include "core/bounds/window_sweep.h"

namespace tidemark::core {
namespace {

constexpr char kNoMemory[] = "no host memory for the bound";

// The largest traffic of a window that is one iteration long: every iteration has that window.
bool MostPerIteration(const Array<int64_t>& demand, const Array<IdleGap>& gaps, Bytes* most) {
  const auto n = static_cast<uint32_t>(demand.size());
  WindowSweep sweep;
  Array<int64_t> row;
  if (!sweep.Init(demand, gaps) || !row.Resize(n + 1)) return false;
  *most = 0;
  for (uint32_t start = 0; start < n; ++start) {
    sweep.Run(start, row.begin());
    *most = std::max(*most, static_cast<Bytes>(row[n]));
  }
  return true;
}

}  // namespace

TrafficBound FindTrafficBound(const Step& step, const Machine& machine) {
  TrafficBound bound;
  IdleGaps gaps;
  bound.outcome = gaps.Build(step, machine);
  bound.reason = gaps.reason;
  if (bound.outcome != BoundOutcome::kBound) return bound;
  Array<int64_t> demand;
  Array<IdleGap> spans;
  if (!Mirror(gaps.dirty_demand, &demand) ||
      !Mirror(gaps.spans, static_cast<uint32_t>(demand.size()), &spans) ||
      !MostPerIteration(demand, spans, &bound.bytes_out) ||
      !MostPerIteration(gaps.demand, gaps.gaps, &bound.bytes_in)) {
    bound.outcome = BoundOutcome::kNoMemory;
    bound.reason = kNoMemory;
  }
  return bound;
}

TimeBound FindTimeBound(const Step& step, const Machine& machine, Granularity granularity) {
  TimeBound bound;
  IdleGaps gaps;
  bound.outcome = gaps.Build(step, machine);
  bound.reason = gaps.reason;
  if (bound.outcome == BoundOutcome::kBadInput || bound.outcome == BoundOutcome::kNoMemory) {
    return bound;
  }
  bound.smallest_device_budget = gaps.smallest_device_budget;
  for (const Nanoseconds duration : gaps.duration) bound.ideal_time += duration;
  bound.time = bound.ideal_time;
  if (bound.outcome == BoundOutcome::kCannot) return bound;
  WindowBound windows(gaps, machine, granularity);
  if (!windows.Run()) {
    bound.outcome = BoundOutcome::kNoMemory;
    bound.reason = kNoMemory;
    return bound;
  }
  bound.time += static_cast<Nanoseconds>(windows.stall());
  return bound;
}

}  // namespace tidemark::core
