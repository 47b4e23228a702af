// Implementation of tests/bench/allocator/score.h: the figures. Printing is in print.cc.
// Threads: none.

#include "tests/bench/allocator/score.h"

#include "core/arena.h"
#include "tests/bench/allocator/gmlake_model.h"
#include "tests/bench/allocator/measure.h"
#include "tests/bench/allocator/ours.h"
#include "tests/bench/allocator/packing.h"
#include "tests/bench/allocator/plain_model.h"
#include "tests/bench/allocator/torch_model.h"

namespace tidemark::bench {
namespace {

constexpr int kRepetitions = 4;
constexpr size_t kMostPackedBlocks = 60000;  // packing takes time in the square of them

const char kPacking[] = "offline packing";

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
  return trace.steps.empty() ? replay::Repeat(trace, kRepetitions) : trace;
}

// `with_slack` is null for allocators that know no slack.
Row ScoreOne(const replay::Trace& trace, const replay::Trace& steady, const PolicyKind& kind,
             PolicyKind (*with_slack)(uint32_t)) {
  Row row;
  const replay::Peak peak = replay::PeakRequested(trace);
  const replay::Peak steady_peak = replay::PeakRequested(steady);
  row.trace = trace.name;
  row.policy = kind.name;
  row.requested = peak.requested;
  row.recorded = trace.recorded;
  row.recorded_peak = trace.recorded_peak_reserved;
  row.fixed_shape = steady.fixed_shape;
  const Replayed once = Replay(trace, kind, kNoLimit, peak.event);
  const Replayed again = Replay(steady, kind, kNoLimit, steady_peak.event);
  row.physical = Ratio(once.peak_held, peak.requested);
  row.repeated = Ratio(again.peak_held, steady_peak.requested);
  row.internal = Ratio(once.at_peak.allocated - once.at_peak.requested, once.at_peak.allocated);
  row.external = once.at_peak.free_held == 0
                     ? 0
                     : 1 - Ratio(once.at_peak.largest_free, once.at_peak.free_held);
  const Bytes least = MinimumCapacity(steady, kind, steady_peak.requested, again.peak_held);
  row.capacity = Ratio(least, steady_peak.requested);
  Bytes floor = least;
  if (with_slack != nullptr) {
    const PolicyKind tight = with_slack(0);
    const Replayed free = Replay(steady, tight, kNoLimit, steady_peak.event);
    floor = MinimumCapacity(steady, tight, steady_peak.requested, free.peak_held);
  }
  for (int i = 0; i < kSlacks; ++i) {
    const Bytes capacity = floor + floor / 1000 * kSlackPermille[i];
    const PolicyKind slackened = with_slack == nullptr ? kind : with_slack(kSlackPermille[i]);
    const Replayed slack = Replay(steady, slackened, capacity, steady_peak.event);
    row.remaps[i] = slack.completed ? slack.mapped_per_step : -1;
    if (i == 0) row.burst = slack.largest_burst;
  }
  return row;
}

Row ScorePacking(const replay::Trace& trace) {
  Row row;
  row.trace = trace.name;
  row.policy = kPacking;
  row.requested = replay::PeakRequested(trace).requested;
  row.physical = row.repeated = row.capacity = Ratio(OfflinePacking(trace), row.requested);
  return row;
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
            return std::make_unique<PlainModel>(device, permille);
          }};
}

PolicyKind OursWithSlack(uint32_t permille) {
  return {"Tidemark", [permille](Device* device) {
            return MakeOurs(device, OursOptions{permille, false});
          }};
}

std::vector<Row> Score(const replay::Trace& trace, const std::string& only) {
  const auto wanted = [&](const std::string& name) { return name.find(only) != std::string::npos; };
  const replay::Trace steady = Steady(trace);
  std::vector<Row> rows;
  for (const PolicyKind& kind : Yardsticks()) {
    if (wanted(kind.name)) rows.push_back(ScoreOne(trace, steady, kind, nullptr));
  }
  if (wanted(Plain().name)) rows.push_back(ScoreOne(trace, steady, Plain(), PlainWithSlack));
  if (wanted(Ours().name)) rows.push_back(ScoreOne(trace, steady, Ours(), OursWithSlack));
  if (wanted(kPacking) && trace.blocks.size() <= kMostPackedBlocks) {
    rows.push_back(ScorePacking(trace));
  }
  return rows;
}

}  // namespace tidemark::bench
