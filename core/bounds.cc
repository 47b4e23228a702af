#include "core/bounds.h"

#include <algorithm>

#include "core/bounds/coarse_step.h"
#include "core/bounds/dual_bound.h"
#include "core/bounds/fluid_bound.h"
#include "core/bounds/window_bound.h"
#include "core/bounds/window_sweep.h"

namespace tidemark::core {
namespace {

// Each level starts from the prices of the one before. Powers of two times the first, so that its
// stretches of the step nest.
constexpr uint32_t kMoments[] = {6, 12, 24, kFewMoments, 96, 192, 384};

constexpr double kPromising = 0.75;   // of the windows' stall: finer levels may exceed it
constexpr double kWorthMore = 1.001;  // what a level with many moments adds, for a finer one
// Where the stall of the step as it is is sought: so much above the windows', or this part of the
// step's time.
constexpr double kAbove = 1.1;
constexpr double kShareOfTime = 20;
constexpr double kRounding = 1e-9;  // of sums of some thousand doubles, with room

constexpr double kLongestStall = 0x1p61;  // ns; what exceeds it stays a bound

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

// The best of both bounds in ns on top of the durations. False: no host memory.
bool LeastStall(const IdleGaps& gaps, const Machine& machine, const TimeBoundOptions& options,
                double* stall) {
  {
    WindowBound windows(gaps, machine, options.granularity);
    if (!windows.Run()) return false;
    *stall = windows.stall();
  }
  if (!options.prices) return true;
  Prices prices;
  double best = 0;
  for (const uint32_t moments : kMoments) {
    const bool promising = best > 0 && best >= *stall * kPromising;
    if (moments >= kFewMoments && !promising) break;
    CoarseStep coarse;
    if (!coarse.Build(gaps, moments, options.granularity)) return false;
    DualBound bound(coarse, machine);
    if (!bound.Run(*stall, &prices)) return false;
    const double before = best;
    best = std::max(best, bound.stall());
    if (coarse.moments < moments) break;  // no finer step to be had
    if (moments > kFewMoments && best < before * kWorthMore) break;
  }
  if (options.granularity == Granularity::kBoundary) {
    double time = 0;
    for (const Nanoseconds duration : gaps.duration) time += static_cast<double>(duration);
    const double expected = std::max(*stall * kAbove, time / kShareOfTime);
    double fluid = 0;
    if (!FindFluidBound(gaps, machine, expected, options.effort, &fluid)) return false;
    best = std::max(best, fluid);
  }
  *stall = std::max(*stall, best * (1 - kRounding));
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

TimeBound FindTimeBound(const Step& step, const Machine& machine, const TimeBoundOptions& options) {
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
  if (bound.outcome == BoundOutcome::kBound && !gaps.exchanges_fit &&
      options.granularity == Granularity::kBoundary) {
    bound.outcome = BoundOutcome::kCannot;
    bound.reason = "what leaves and what returns between two operations exceed the host budget";
  }
  if (bound.outcome == BoundOutcome::kCannot) return bound;
  double stall = 0;
  if (!LeastStall(gaps, machine, options, &stall)) {
    bound.outcome = BoundOutcome::kNoMemory;
    bound.reason = kNoMemory;
    return bound;
  }
  bound.time += static_cast<Nanoseconds>(std::min(stall, kLongestStall));
  return bound;
}

}  // namespace tidemark::core
