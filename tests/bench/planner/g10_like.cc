// The G10-like scheduler of yardsticks.h: chooses windows offline, then walks the step with them.

#include <algorithm>
#include <queue>
#include <vector>

#include "tests/bench/planner/paging_walk.h"
#include "tests/bench/planner/yardsticks.h"

namespace tidemark::bench {
namespace {

using core::BufferIndex;
using core::Bytes;
using core::OpIndex;

// An idle window of one buffer, in turns of one iteration; `use` may lie in the next.
struct Window {
  BufferIndex buffer;
  Turn last;  // the use before
  Turn use;   // the use after
};

// Where a window's copies would run, and what that is worth.
struct Offer {
  Turn gone = 0;   // away from this turn ...
  Turn start = 0;  // ... to the one at which the copy in starts
  double ratio = 0;
};

class Scheduler {
 public:
  Scheduler(const core::Step& step, const core::Machine& machine)
      : step_(step), machine_(machine), n_(static_cast<Turn>(step.ops.size())) {
    pressure_.assign(step.ops.size(), 0);
    host_.assign(step.ops.size(), 0);
    out_busy_.assign(step.ops.size(), 0);
    in_busy_.assign(step.ops.size(), 0);
    evict_after_.resize(step.ops.size());
    fetch_at_.resize(step.ops.size());
    Collect();
  }

  void Schedule() {
    struct Entry {
      double ratio;
      size_t window;
      bool operator<(const Entry& other) const { return ratio < other.ratio; }
    };
    std::priority_queue<Entry> heap;
    for (size_t w = 0; w < windows_.size(); ++w) heap.push({Value(windows_[w]).ratio, w});
    // Values only fall as others are chosen, so a value that is still the highest is right.
    while (!heap.empty() && heap.top().ratio > 0 && IsPressed()) {
      const size_t w = heap.top().window;
      heap.pop();
      const Offer offer = Value(windows_[w]);
      if (offer.ratio <= 0) continue;
      if (!heap.empty() && offer.ratio < heap.top().ratio) {
        heap.push({offer.ratio, w});
        continue;
      }
      Choose(windows_[w], offer);
    }
    StartEarly();
  }

  const std::vector<std::vector<BufferIndex>>& evict_after() const { return evict_after_; }
  const std::vector<std::vector<BufferIndex>>& fetch_at() const { return fetch_at_; }

 private:
  // Turns here are of two iterations at most; a division would be most of the scheduler's time.
  size_t At(Turn turn) const { return static_cast<size_t>(turn < n_ ? turn : turn - n_); }
  double Duration(Turn turn) const { return static_cast<double>(step_.ops[At(turn)].duration); }

  void Collect() {
    std::vector<std::vector<Turn>> uses(step_.buffers.size());
    for (size_t i = 0; i < step_.ops.size(); ++i) {
      const core::StepOp& op = step_.ops[i];
      for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
        uses[step_.accesses[a].buffer].push_back(static_cast<Turn>(i));
      }
    }
    for (BufferIndex b = 0; b < step_.buffers.size(); ++b) {
      const core::StepBuffer& buffer = step_.buffers[b];
      const Turn from = buffer.persistent ? 0 : buffer.born;
      const Turn to = buffer.persistent ? n_ - 1 : buffer.freed;
      for (Turn i = from; i <= to; ++i) pressure_[At(i)] += static_cast<double>(buffer.bytes);
      if (!buffer.movable || buffer.bytes < machine_.min_bytes || uses[b].empty()) continue;
      for (size_t k = 0; k + 1 < uses[b].size(); ++k) AddWindow(b, uses[b][k], uses[b][k + 1]);
      if (buffer.persistent) AddWindow(b, uses[b].back(), uses[b].front() + n_);
    }
  }

  void AddWindow(BufferIndex b, Turn last, Turn use) {
    if (use - last > 2) windows_.push_back({b, last, use});
  }

  bool IsPressed() const {
    const auto cap = static_cast<double>(machine_.device_budget);
    return std::any_of(pressure_.begin(), pressure_.end(), [=](double p) { return p > cap; });
  }

  Offer Value(const Window& w) const {
    const auto bytes = static_cast<double>(step_.buffers[w.buffer].bytes);
    Offer offer;
    double left = bytes * 1e9 / machine_.out_rate;
    for (offer.gone = w.last + 1; left > 0 && offer.gone < w.use; ++offer.gone) {
      left -= std::max(0.0, Duration(offer.gone) - out_busy_[At(offer.gone)]);
    }
    if (left > 0) return offer;
    left = bytes * 1e9 / machine_.in_rate;
    for (offer.start = w.use; left > 0 && offer.start > offer.gone; --offer.start) {
      left -= std::max(0.0, Duration(offer.start - 1) - in_busy_[At(offer.start - 1)]);
    }
    if (left > 0 || offer.start <= offer.gone) return offer;
    double relief = 0;
    for (Turn i = offer.gone; i < offer.start; ++i) {
      const double over = pressure_[At(i)] - static_cast<double>(machine_.device_budget);
      relief += std::min(bytes, std::max(0.0, over)) * Duration(i);
    }
    for (Turn i = w.last + 1; i < w.use && machine_.host_budget != core::kNoLimit; ++i) {
      if (host_[At(i)] + bytes > static_cast<double>(machine_.host_budget)) return offer;
    }
    offer.ratio = relief / (bytes / machine_.out_rate + bytes / machine_.in_rate);
    return offer;
  }

  void Book(std::vector<double>* busy, Turn from, Turn step, double ns) {
    for (Turn i = from; ns > 0; i += step) {
      const double part = std::min(ns, std::max(0.0, Duration(i) - (*busy)[At(i)]));
      (*busy)[At(i)] += part;
      ns -= part;
    }
  }

  void Choose(const Window& w, const Offer& offer) {
    const auto bytes = static_cast<double>(step_.buffers[w.buffer].bytes);
    Book(&out_busy_, w.last + 1, 1, bytes * 1e9 / machine_.out_rate);
    Book(&in_busy_, w.use - 1, -1, bytes * 1e9 / machine_.in_rate);
    for (Turn i = offer.gone; i < offer.start; ++i) pressure_[At(i)] -= bytes;
    for (Turn i = w.last + 1; i < w.use; ++i) host_[At(i)] += bytes;
    evict_after_[At(w.last)].push_back(w.buffer);
    chosen_.push_back({w, offer});
  }

  // In the order of their starts, each copy in goes as far forward as capacity allows.
  void StartEarly() {
    std::sort(chosen_.begin(), chosen_.end(),
              [](const auto& a, const auto& b) { return a.second.start < b.second.start; });
    for (auto& [w, offer] : chosen_) {
      const auto bytes = static_cast<double>(step_.buffers[w.buffer].bytes);
      while (offer.start - 1 > offer.gone && pressure_[At(offer.start - 1)] + bytes <=
                                                 static_cast<double>(machine_.device_budget)) {
        pressure_[At(--offer.start)] += bytes;
      }
      fetch_at_[At(offer.start)].push_back(w.buffer);
    }
  }

  const core::Step& step_;
  const core::Machine& machine_;
  const Turn n_;
  std::vector<Window> windows_;
  std::vector<double> pressure_, host_, out_busy_, in_busy_;  // by operation
  std::vector<std::pair<Window, Offer>> chosen_;
  std::vector<std::vector<BufferIndex>> evict_after_, fetch_at_;
};

class Scheduled : public PagingPolicy {
 public:
  explicit Scheduled(const Scheduler& schedule) : schedule_(schedule) {}

  Turn KeyOf(const PagingWalk& walk, BufferIndex b, Turn) const override { return walk.LastUse(b); }

  void AtBoundary(PagingWalk* walk, Turn turn) override {
    const Turn n = walk->ops();
    if (turn > 0) {
      for (BufferIndex b : schedule_.evict_after()[static_cast<size_t>((turn - 1) % n)]) {
        if (walk->NextUse(b, turn) > turn) walk->StartEvictionOf(b, turn, 0);
      }
    }
    for (BufferIndex b : schedule_.fetch_at()[static_cast<size_t>(turn % n)]) late_.push_back(b);
    for (size_t i = 0; i < late_.size();) {
      const bool back = walk->AwayBytes(late_[i]) == 0;
      if (!back && !walk->Prefetch(late_[i], turn)) break;
      late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

 private:
  const Scheduler& schedule_;
  std::vector<BufferIndex> late_;  // to be fetched, in order, as soon as there is room
};

}  // namespace

bool G10Plan(const core::Step& step, const core::Machine& machine, core::Plan* plan,
             std::string* why_not) {
  Scheduler schedule(step, machine);
  schedule.Schedule();
  Scheduled policy(schedule);
  const PagingRules rules = {.whole_buffers = true};
  return PagingWalk(step, machine, rules).Run(&policy, plan, why_not);
}

}  // namespace tidemark::bench
