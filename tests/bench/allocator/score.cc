// Implementation of tests/bench/allocator/score.h: the figures. Printing is in print.cc.
// Threads: none.

#include "tests/bench/allocator/score.h"

#include "core/arena.h"
#include "tests/bench/allocator/floors.h"
#include "tests/bench/allocator/gmlake_model.h"
#include "tests/bench/allocator/measure.h"
#include "tests/bench/allocator/ours.h"
#include "tests/bench/allocator/packing.h"
#include "tests/bench/allocator/plain_model.h"
#include "tests/bench/allocator/torch_model.h"

namespace tidemark::bench {
namespace {

constexpr int kRepetitions = 24;
constexpr int kFewRepetitions = 2;            // of long traces, which hold many iterations already
constexpr size_t kRepeatedEvents = 1u << 20;  // all repetitions together, unless they are few
constexpr size_t kMostPackedBlocks = 60000;   // packing takes time in the square of them

constexpr size_t kStepsOfTraces = 12;  // of generated ones

double Ratio(Bytes part, Bytes whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

PolicyKind Torch(const char* name, const TorchOptions& options) {
  return {name, [options](Device* device) -> std::unique_ptr<Policy> {
            return std::make_unique<TorchModel>(device, options);
          }};
}

PolicyKind Gmlake(const char* name, Bytes limit) {
  return {name, [limit](Device* device) -> std::unique_ptr<Policy> {
            return std::make_unique<GmlakeModel>(device, GmlakeOptions{limit, 10});
          }};
}

// What a trace looks like when its iteration recurs.
replay::Trace Steady(const replay::Trace& trace) {
  if (!trace.steps.empty()) return trace;
  const size_t times = kRepeatedEvents / std::max<size_t>(trace.events.size(), 1);
  return replay::Repeat(trace, std::clamp(static_cast<int>(times), kFewRepetitions, kRepetitions));
}

class Scorer {
 public:
  // `with_slack` is null for allocators that know no slack.
  Scorer(const replay::Trace& trace, const replay::Trace& steady, const PolicyKind& kind,
         PolicyKind (*with_slack)(uint32_t))
      : trace_(trace), steady_(steady), kind_(kind), with_slack_(with_slack) {
    peak_ = replay::PeakRequested(trace);
    steady_peak_ = replay::PeakRequested(steady);
  }

  Row Score() {
    row_.trace = trace_.name;
    row_.policy = kind_.name;
    row_.requested = peak_.requested;
    row_.recorded = trace_.recorded;
    row_.recorded_peak = trace_.recorded_peak_reserved;
    row_.fixed_shape = steady_.fixed_shape;
    Unlimited();
    Limited();
    return row_;
  }

 private:
  Replayed PlaySteady(const PolicyKind& kind, Bytes capacity) const {
    return Replay(steady_, kind, capacity, steady_peak_.event);
  }

  void Unlimited() {
    const Replayed once = Replay(trace_, kind_, kNoLimit, peak_.event);
    const Replayed again = PlaySteady(kind_, kNoLimit);
    const Usage& usage = once.at_peak;
    row_.physical = once.completed ? Ratio(once.peak_held, peak_.requested) : Row::kNone;
    row_.repeated = again.completed ? Ratio(again.peak_held, steady_peak_.requested) : Row::kNone;
    row_.mapped_unlimited = again.completed ? again.mapped_per_step : Row::kNone;
    row_.internal = Ratio(usage.allocated - usage.requested, usage.allocated);
    row_.external = usage.free_held == 0 ? 0 : 1 - Ratio(usage.largest_free, usage.free_held);
    least_ = MinimumCapacity(steady_, kind_, steady_peak_.requested, again.peak_held);
    row_.capacity = again.completed ? Ratio(least_, steady_peak_.requested) : Row::kNone;
  }

  void Limited() {
    Bytes floor = least_;
    if (with_slack_ != nullptr) {
      const PolicyKind tight = with_slack_(0);
      const Bytes enough = PlaySteady(tight, kNoLimit).peak_held;
      floor = MinimumCapacity(steady_, tight, steady_peak_.requested, enough);
    }
    for (int i = 0; i < kSlacks; ++i) {
      const Bytes capacity = floor + floor / 1000 * kSlackPermille[i];
      const PolicyKind kind = with_slack_ == nullptr ? kind_ : with_slack_(kSlackPermille[i]);
      const Replayed slack = PlaySteady(kind, capacity);
      row_.remaps[i] = slack.completed ? slack.mapped_per_step : -1;
      if (i == 0) row_.burst = slack.largest_burst;
    }
  }

  const replay::Trace& trace_;
  const replay::Trace& steady_;
  const PolicyKind& kind_;
  PolicyKind (*with_slack_)(uint32_t);
  replay::Peak peak_;
  replay::Peak steady_peak_;
  Bytes least_ = 0;
  Row row_;
};

Row Floor(const char* name, const replay::Trace& trace, Bytes physical) {
  Row row;
  row.trace = trace.name;
  row.policy = name;
  row.is_floor = true;
  row.requested = replay::PeakRequested(trace).requested;
  row.physical = Ratio(physical, row.requested);
  row.repeated = row.capacity = Row::kNone;
  return row;
}

Row ScorePacking(const replay::Trace& trace) {
  Row row = Floor(kPacking, trace, OfflinePacking(trace));
  row.repeated = row.capacity = row.physical;
  return row;
}

// Placement at its best, at any cost in moves and time.
Row ScoreFewest(const replay::Trace& trace) {
  const PolicyKind kind = {kFewest, [](Device* device) -> std::unique_ptr<Policy> {
                             return std::make_unique<PlainModel>(device, PlainOptions{0, true});
                           }};
  return Floor(kFewest, trace, Replay(trace, kind, kNoLimit, 0).peak_held);
}

// What processes hold together on a device that has little more than the peak: each gives chunks
// back when another one asks, as the daemon makes them.
Row ScoreFullDevice(const replay::Trace& trace) {
  const replay::Peak peak = replay::PeakRequested(trace);
  const auto capacity = static_cast<Bytes>(static_cast<double>(peak.requested) * kFullDeviceShare);
  const Replayed replayed = Replay(trace, Ours(), capacity, peak.event);
  Row row = Floor(kFullDevice, trace, replayed.peak_held);
  if (!replayed.completed) row.physical = Row::kNone;
  row.maps = replayed.completed;
  row.mapped_unlimited = replayed.mapped_per_step;
  row.burst = replayed.largest_burst;
  return row;
}

// The same trace while the device is so many requests behind the host.
Row ScoreInFlight(const replay::Trace& steady, const char* name, bool in_stream_order) {
  const OursOptions options = {0, true, kRequestsLate, in_stream_order};
  const PolicyKind kind = {name, [options](Device* device) { return MakeOurs(device, options); }};
  const Replayed replayed = Replay(steady, kind, kNoLimit, 0);
  Row row = Floor(name, steady, replayed.peak_held);
  row.maps = true;
  row.mapped_unlimited = replayed.mapped_per_step;
  row.burst = replayed.largest_burst;
  return row;
}

void AddFloors(const replay::Trace& trace, const replay::Trace& steady, const std::string& only,
               std::vector<Row>* rows) {
  const auto wanted = [&](const char* name) {
    return std::string(name).find(only) != std::string::npos;
  };
  if (wanted(kInFlight)) rows->push_back(ScoreInFlight(steady, kInFlight, false));
  if (wanted(kInOrder)) rows->push_back(ScoreInFlight(steady, kInOrder, true));
  if (wanted(kFewest)) rows->push_back(ScoreFewest(trace));
  if (wanted(kPacking) && trace.blocks.size() <= kMostPackedBlocks) {
    rows->push_back(ScorePacking(trace));
  }
  if (trace.processes() == 1) return;
  if (wanted(kPeaksApart)) rows->push_back(Floor(kPeaksApart, trace, SumOfPeaks(trace)));
  if (wanted(kFullDevice)) rows->push_back(ScoreFullDevice(trace));
  if (wanted(kPeaksOfStep)) {
    rows->push_back(Floor(kPeaksOfStep, trace, SumOfRecentPeaks(trace, kStepsOfTraces)));
  }
}

}  // namespace

std::vector<PolicyKind> Yardsticks() {
  TorchOptions wide;
  wide.expandable = true;
  TorchOptions narrow = wide;
  narrow.large_page = 2 * kMiB;
  return {Torch("PyTorch native", TorchOptions()), Torch("expandable 20 MiB", wide),
          Torch("expandable 2 MiB", narrow), Gmlake("GMLake", 512 * kMiB),
          Gmlake("GMLake from 64 MiB", 64 * kMiB)};
}

PolicyKind Ours() {
  return {"Tidemark", [](Device* device) { return MakeOurs(device, OursOptions()); }};
}

PolicyKind Plain() { return PlainWithSlack(core::ArenaOptions().slack_permille); }

PolicyKind PlainWithSlack(uint32_t permille) {
  return {"plain, remapping", [permille](Device* device) -> std::unique_ptr<Policy> {
            return std::make_unique<PlainModel>(device, PlainOptions{permille, false});
          }};
}

PolicyKind OursWithSlack(uint32_t permille) {
  return {"Tidemark", [permille](Device* device) {
            return MakeOurs(device, OursOptions{permille, false});
          }};
}

bool HasAllocator(const std::string& only) {
  std::vector<std::string> names = {Plain().name, Ours().name,  kPacking,  kFewest,
                                    kPeaksApart,  kPeaksOfStep, kInFlight, kInOrder};
  for (const PolicyKind& kind : Yardsticks()) names.push_back(kind.name);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name.find(only) != std::string::npos; });
}

std::vector<Row> Score(const replay::Trace& trace, const std::string& only) {
  const auto wanted = [&](const std::string& name) { return name.find(only) != std::string::npos; };
  const replay::Trace steady = Steady(trace);
  std::vector<Row> rows;
  for (const PolicyKind& kind : Yardsticks()) {
    if (wanted(kind.name)) rows.push_back(Scorer(trace, steady, kind, nullptr).Score());
  }
  const PolicyKind plain = Plain();
  const PolicyKind ours = Ours();
  if (wanted(plain.name)) {
    rows.push_back(Scorer(trace, steady, plain, PlainWithSlack).Score());
  }
  if (wanted(ours.name)) rows.push_back(Scorer(trace, steady, ours, OursWithSlack).Score());
  AddFloors(trace, steady, only, &rows);
  return rows;
}

}  // namespace tidemark::bench
