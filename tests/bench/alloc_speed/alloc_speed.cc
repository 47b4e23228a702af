// Nanoseconds per allocate/free pair of Tidemark's arena and of what others use, over the same
// sequences in one run. Prints a table; asserts nothing.
//
//   alloc_speed [TRACES]     TRACES: a folder with alloc/*.csv.gz, replayed besides the generators
//
// A pair is one allocation and its own free, each timed alone. Figures are the medians over the
// timed steps of the step's median and 99th percentile, so that one interruption of the process
// does not decide; preemption is not filtered out otherwise. The first row allocates nothing: what
// clock and calls cost, which is in every other row, too; "net" is without it. Ratios compare with
// Tidemark's row under the same rule: both with a lock around each call, or both without. They are
// medians over the steps of the ratio of what the middle half of a step's pairs took in the mean,
// as clocks count tens of nanoseconds. All take turns at a few steps, so that they meet the same
// speed of the machine; where several threads call, each contender plays the whole sequence at
// once.
//
// Threads: as many as the row says.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/alloc_speed/clock.h"
#include "tests/bench/alloc_speed/contender.h"
#include "tests/replay/generate.h"
#include "tests/replay/load.h"

namespace tidemark::bench {
namespace {

using replay::BlockId;
using replay::Event;
using replay::Trace;

enum class Rule { kTable, kBare, kLocked };  // the table's own cost; who may call at once

struct Maker {
  const char* name;
  std::unique_ptr<Contender> (*make)(bool shared, size_t capacity);
  Rule rule;
};
// Tidemark comes first under its rule. RMM's resources lock in any case.
constexpr Maker kMakers[] = {
    {"nothing", MakeNothing, Rule::kTable},
    {"Tidemark arena", MakeTidemark, Rule::kBare},
#ifdef TIDEMARK_BENCH_TLSF
    {"TLSF (VMA virtual block)", MakeTlsf, Rule::kBare},
#endif
#ifdef TIDEMARK_BENCH_MIMALLOC
    {"mimalloc", MakeMimalloc, Rule::kBare},
#endif
    {"Tidemark arena, locked", MakeTidemark, Rule::kLocked},
#ifdef TIDEMARK_BENCH_TLSF
    {"TLSF, locked", MakeTlsf, Rule::kLocked},
#endif
#ifdef TIDEMARK_BENCH_RMM
    {"RMM pool, locked", MakeRmmPool, Rule::kLocked},
    {"RMM arena, locked", MakeRmmArena, Rule::kLocked},
#endif
};

struct Figures {
  double median = 0;
  double p99 = 0;
  double early_median = 0;  // the same of the first steps, while an allocator may still learn
  double early_p99 = 0;
  std::vector<double> means;  // of the middle half of each later step's pairs
};

double At(std::vector<double>* values, double share) {
  if (values->empty()) return 0;
  const auto nth = values->begin() + static_cast<long>(share * double(values->size() - 1));
  std::nth_element(values->begin(), nth, values->end());
  return *nth;
}

double MiddleMean(std::vector<double>* values) {
  if (values->empty()) return 0;
  std::sort(values->begin(), values->end());
  const size_t quarter = values->size() / 4;
  double sum = 0;
  for (size_t i = quarter; i < values->size() - quarter; ++i) sum += (*values)[i];
  return sum / static_cast<double>(values->size() - 2 * quarter);
}

// Replays events one by one; keeps what each pair cost.
class Player {
 public:
  Player(const Trace& trace, Contender* contender, const Calibration& clock)
      : trace_(trace),
        contender_(contender),
        clock_(clock),
        live_(trace.blocks.size()),
        cost_(trace.blocks.size()) {}

  bool Play(size_t first, size_t end, std::vector<double>* pairs) {
    for (size_t i = first; i < end; ++i) {
      const Event event = trace_.events[i];
      const replay::BlockInfo& info = trace_.blocks[event.block];
      const uint64_t start = Ticks();
      if (event.allocate) {
        live_[event.block] = contender_->Allocate(info.bytes, info.stream);
      } else {
        contender_->Free(live_[event.block], info.bytes, info.stream);
      }
      const double cost = clock_.Nanoseconds(Ticks() - start);
      if (event.allocate) {
        if (live_[event.block] == nullptr) return false;
        cost_[event.block] = cost;
      } else {
        live_[event.block] = nullptr;
        if (pairs != nullptr) pairs->push_back(cost_[event.block] + cost);
      }
    }
    return true;
  }

  void FreeRest() {
    for (BlockId id = 0; id < live_.size(); ++id) {
      if (live_[id] != nullptr) {
        contender_->Free(live_[id], trace_.blocks[id].bytes, trace_.blocks[id].stream);
      }
    }
  }

 private:
  const Trace& trace_;
  Contender* contender_;
  const Calibration& clock_;
  std::vector<void*> live_;
  std::vector<double> cost_;
};

constexpr size_t kSettled = 12;  // steps after which an allocator that learns has done so
// Events, about: short beside the seconds in which a machine is fast or slow, long enough to find
// one's data in the caches.
constexpr size_t kTurn = 20000;

struct Sequence {
  std::string name;
  Trace trace;
  size_t settles_in = 2;  // steps
};

// One contender's way through a sequence, step by step.
class Run {
 public:
  Run(const Sequence& sequence, Contender* contender, const Calibration& clock)
      : trace_(sequence.trace),
        player_(trace_, contender, clock),
        first_(std::min<size_t>(2, trace_.steps.size() - 1)),
        settled_(std::min(std::max(sequence.settles_in, first_), trace_.steps.size() - 1)) {}

  // In order; what comes before the first step belongs to it. The arena grows in the first ones,
  // which are not timed. Nothing more is played once a request was refused.
  void Play(size_t step) {
    const size_t steps = trace_.steps.size();
    const size_t begin = step == 0 ? 0 : trace_.steps[step];
    const size_t end = step + 1 < steps ? trace_.steps[step + 1] : trace_.events.size();
    std::vector<double> pairs;
    ok_ = ok_ && player_.Play(begin, end, step < first_ ? nullptr : &pairs);
    if (step < first_ || !ok_) return;
    (step < settled_ ? early_medians_ : medians_).push_back(At(&pairs, 0.5));
    (step < settled_ ? early_tails_ : tails_).push_back(At(&pairs, 0.99));
    if (step >= settled_) means_.push_back(MiddleMean(&pairs));
  }
  bool ok() const { return ok_; }
  Figures End() {
    player_.FreeRest();
    return {At(&medians_, 0.5), At(&tails_, 0.5), At(&early_medians_, 0.5), At(&early_tails_, 1),
            means_};
  }

 private:
  const Trace& trace_;
  Player player_;
  size_t first_;
  size_t settled_;
  bool ok_ = true;
  std::vector<double> medians_, tails_, early_medians_, early_tails_, means_;
};

size_t CapacityFor(const Trace& trace) {
  return (replay::PeakRequested(trace).requested * 2 + (size_t{1} << 30)) >> 21 << 21;
}

// What the rows so far say, for the ratios of the next ones.
class Rows {
 public:
  void Add(const Maker& maker, bool ok, const Figures& figures) {
    if (maker.rule == Rule::kTable) table_ = figures;
    if (maker.make == MakeTidemark) ours_ = figures;
    if (!ok) {
      std::printf("  %-28s refused a request\n", maker.name);
      return;
    }
    std::printf("  %-28s %9.0f %9.0f", maker.name, figures.median, figures.p99);
    if (maker.rule != Rule::kTable) {
      std::printf(" %9.1fx %7.1fx", ToOurs(figures, 0), ToOurs(figures, 1));
    }
    std::printf("\n");
    if (maker.make == MakeTidemark && figures.early_median != 0) {
      std::printf("    before that %25.0f %9.0f in the worst step\n", figures.early_median,
                  figures.early_p99);
    }
    std::fflush(stdout);
  }

 private:
  // Without the table's own cost, so many times.
  double ToOurs(const Figures& figures, double times) const {
    std::vector<double> ratios;
    for (size_t i = 0; i < std::min(figures.means.size(), ours_.means.size()); ++i) {
      const double own = times * table_.means[i];
      ratios.push_back((figures.means[i] - own) / (ours_.means[i] - own));
    }
    return At(&ratios, 0.5);
  }

  Figures table_;
  Figures ours_;
};

void RunSequence(const Sequence& sequence, const Calibration& clock) {
  const size_t capacity = CapacityFor(sequence.trace);
  std::printf("%s: %zu events, peak %.2f GiB, from step %zu on\n", sequence.name.c_str(),
              sequence.trace.events.size(),
              static_cast<double>(replay::PeakRequested(sequence.trace).requested) / (1 << 30),
              sequence.settles_in + 1);
  std::vector<std::unique_ptr<Contender>> contenders;
  std::vector<Run> runs;
  for (const Maker& maker : kMakers) {
    contenders.push_back(maker.make(maker.rule == Rule::kLocked, capacity));
    runs.emplace_back(sequence, contenders.back().get(), clock);
  }
  const size_t steps = sequence.trace.steps.size();
  const size_t turn = std::max<size_t>(1, kTurn * steps / sequence.trace.events.size());
  for (size_t step = 0; step < steps; step += turn) {
    for (size_t i = 0; i < runs.size(); ++i) {
      Run& run = runs[(step / turn + i) % runs.size()];
      for (size_t s = step; s < std::min(step + turn, steps); ++s) run.Play(s);
    }
  }
  Rows rows;
  for (size_t i = 0; i < runs.size(); ++i) rows.Add(kMakers[i], runs[i].ok(), runs[i].End());
}

// Every thread replays the sequence on a stream of its own, all over one allocator at once.
void RunThreads(const Sequence& sequence, unsigned threads, const Calibration& clock) {
  const size_t capacity = (size_t{1} << 30) + threads * CapacityFor(sequence.trace);
  std::printf("%s, %u threads on one allocator (%u processors here)\n", sequence.name.c_str(),
              threads, std::thread::hardware_concurrency());
  Rows rows;
  for (const Maker& maker : kMakers) {
    if (maker.rule == Rule::kBare) continue;
    const std::unique_ptr<Contender> contender = maker.make(true, capacity);
    std::vector<Figures> each(threads);
    std::atomic<bool> ok{true};
    std::vector<std::thread> running;
    for (unsigned t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        Sequence own = sequence;
        for (replay::BlockInfo& info : own.trace.blocks) info.stream = t;
        Run run(own, contender.get(), clock);
        for (size_t step = 0; step < own.trace.steps.size(); ++step) run.Play(step);
        if (!run.ok()) ok = false;
        each[t] = run.End();
      });
    }
    for (std::thread& thread : running) thread.join();
    Figures mean;
    mean.means.resize(each[0].means.size());
    for (const Figures& f : each) {
      mean.median += f.median / threads;
      mean.p99 += f.p99 / threads;
      for (size_t i = 0; i < std::min(f.means.size(), mean.means.size()); ++i) {
        mean.means[i] += f.means[i] / threads;
      }
    }
    rows.Add(maker, ok, mean);
  }
}

// Requests of any size up to `largest`, log-uniform, freed in random order, `live` at a time.
Trace RandomSizes(double largest, size_t live, uint32_t streams) {
  constexpr size_t kSteps = 20, kEvents = 4000;
  std::mt19937 random(1);
  Trace trace;
  std::vector<BlockId> alive;
  for (size_t step = 0; step < kSteps; ++step) {
    trace.steps.push_back(trace.events.size());
    for (size_t i = 0; i < kEvents; ++i) {
      if (alive.size() < live || random() % 2 == 0) {
        const double share = std::generate_canonical<double, 32>(random);
        const auto bytes = static_cast<uint64_t>(512 * std::pow(largest / 512, share));
        alive.push_back(static_cast<BlockId>(trace.blocks.size()));
        trace.blocks.push_back({bytes, static_cast<uint32_t>(random() % streams), 0});
        trace.events.push_back({alive.back(), true});
      }
      if (alive.size() >= live) {
        const size_t at = random() % alive.size();
        trace.events.push_back({alive[at], false});
        alive[at] = alive.back();
        alive.pop_back();
      }
    }
  }
  return trace;
}

std::vector<Sequence> Sequences(int count, char** arguments) {
  std::vector<Sequence> all;
  replay::TransformerShape shape;
  shape.steps = 6 * kSettled;
  all.push_back({"steady transformer step", replay::GenerateTransformer(shape), kSettled});
  shape.recompute = true;
  shape.shards = 8;
  all.push_back({"recompute, gathered weights", replay::GenerateTransformer(shape), kSettled});
  shape.shortest = 128;
  all.push_back({"the same, varying length", replay::GenerateTransformer(shape), kSettled});
  for (Trace& trace : replay::GeneratedTraces()) {
    if (trace.name == "six streams") all.push_back({"six models on six streams", std::move(trace)});
  }
  all.push_back({"random sizes to 1 MiB", RandomSizes(1 << 20, 1000, 1)});
  all.push_back({"random sizes to 256 MiB", RandomSizes(1 << 28, 500, 1)});
  all.push_back({"random sizes to 16 MiB, 16 streams", RandomSizes(1 << 24, 1000, 16)});
  std::vector<Trace> traces;
  std::vector<std::string> errors;
  if (count > 1) replay::LoadFolder(arguments[1], &traces, &errors);
  for (const std::string& error : errors) std::printf("alloc_speed: %s\n", error.c_str());
  if (traces.empty()) std::printf("no recorded traces given: generators alone\n");
  for (const Trace& trace : traces)
    all.push_back({trace.name, replay::Repeat(trace, 2 * kSettled), kSettled});
  return all;
}

int Main(int count, char** arguments) {
  const Calibration clock;
  const std::vector<Sequence> all = Sequences(count, arguments);
  std::printf("%-30s %9s %9s %10s %8s\n", "ns per allocate/free pair", "median", "p99", "to ours",
              "net");
  for (const Sequence& sequence : all) RunSequence(sequence, clock);
  for (const unsigned threads : {1u, 2u, 4u, 8u}) RunThreads(all[0], threads, clock);
  return 0;
}

}  // namespace
}  // namespace tidemark::bench

int main(int count, char** arguments) { return tidemark::bench::Main(count, arguments); }
