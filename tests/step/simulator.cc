#include "tests/step/simulator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "tests/step/plan_rules.h"

namespace tidemark::steps {
namespace {

using core::BufferIndex;
using core::Bytes;
using core::Machine;
using core::Move;
using core::MoveIndex;
using core::OpIndex;
using core::Plan;
using core::Step;

constexpr double kNever = std::numeric_limits<double>::infinity();

// Uniform in [-1, 1], the same for one operation in every iteration.
double Noise(uint64_t seed, OpIndex op) {
  uint64_t x = seed * 0x9e3779b97f4a7c15u + (uint64_t{op} + 1) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-52 - 1.0;
}

struct Link {
  const core::Array<MoveIndex>* queue = nullptr;
  std::vector<uint8_t> allowed;  // per move: its copy may start and has not
  std::vector<uint8_t> done;     // per move: the copy of its open instance is there
  size_t head = 0;               // position in the queue of the next copy, or of the running one
  bool busy = false;
  double remaining = 0;
  double began = 0;
  double busy_ns = 0;
};

// What one part of a buffer has on the host. Moves of the same bytes of the same buffer share it.
struct HostCopy {
  bool held = false;
  uint64_t version = 0;  // of the buffer, when the copy was made
};

class Run {
 public:
  Run(const Step& step, const Machine& machine, const Plan& plan, const SimulationOptions& options)
      : step_(step), machine_(machine), plan_(plan), options_(options) {}

  Simulation Execute() {
    result_.refusal = BrokenRule(step_, machine_, plan_);
    if (!result_.refusal.empty()) return std::move(result_);
    Index();
    StartSteady();
    if (host_bytes_ > machine_.host_budget) {
      Refuse("an iteration starts with " + std::to_string(host_bytes_) +
             " bytes on the host, and the budget is " + std::to_string(machine_.host_budget));
      return std::move(result_);
    }
    for (int i = 0; i < options_.most_iterations && !result_.steady; ++i) {
      if (!Iteration(i)) return std::move(result_);
      result_.steady = IsSteady();
    }
    result_.step_ns = result_.iteration_ns.back();
    return std::move(result_);
  }

 private:
  using Boundaries = std::vector<std::vector<MoveIndex>>;

  // --- set-up ---

  void Index() {
    const size_t n = step_.ops.size();
    for (Boundaries* at : {&after_, &release_, &reserve_, &ready_}) at->resize(n);
    born_.resize(n);
    freed_.resize(n);
    for (MoveIndex m = 0; m < plan_.moves.size(); ++m) {
      const Move& move = plan_.moves[m];
      if (!move.clean) after_[move.after].push_back(m);
      release_[move.release].push_back(m);
      reserve_[move.reserve].push_back(m);
      ready_[move.ready].push_back(m);
    }
    for (BufferIndex b = 0; b < step_.buffers.size(); ++b) {
      const core::StepBuffer& buffer = step_.buffers[b];
      if (buffer.persistent) continue;
      born_[buffer.born].push_back(b);
      freed_[buffer.freed].push_back(b);
    }
    version_.assign(step_.buffers.size(), 0);
    away_.resize(step_.buffers.size());
    unready_.assign(step_.buffers.size(), 0);
    held_of_.assign(step_.buffers.size(), 0);
    out_.queue = &plan_.out_queue;
    in_.queue = &plan_.in_queue;
    for (Link* link : {&out_, &in_}) {
      link->allowed.assign(plan_.moves.size(), 0);
      link->done.assign(plan_.moves.size(), 0);
    }
    IndexParts();
  }

  void IndexParts() {
    std::vector<MoveIndex> order(plan_.moves.size());
    for (MoveIndex m = 0; m < order.size(); ++m) order[m] = m;
    auto key = [this](MoveIndex m) {
      const Move& move = plan_.moves[m];
      return std::tuple(move.buffer, move.offset, move.bytes, move.release);
    };
    std::sort(order.begin(), order.end(),
              [&](MoveIndex a, MoveIndex b) { return key(a) < key(b); });
    part_.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || !SamePart(order[i - 1], order[i])) part_moves_.emplace_back();
      part_moves_.back().push_back(order[i]);
      part_[order[i]] = part_moves_.size() - 1;
    }
    host_.resize(part_moves_.size());
  }

  bool SamePart(MoveIndex a, MoveIndex b) const {
    const Move &x = plan_.moves[a], &y = plan_.moves[b];
    return x.buffer == y.buffer && x.offset == y.offset && x.bytes == y.bytes;
  }

  // Where each move stands just before boundary 0, when every iteration before went as this one.
  void StartSteady() {
    for (const core::StepBuffer& b : step_.buffers) device_ += b.persistent ? b.bytes : 0;
    for (const core::Parked& parked : plan_.parked) {
      device_ -= parked.bytes;
      host_bytes_ += parked.bytes;
    }
    for (MoveIndex m = 0; m < plan_.moves.size(); ++m) OpenAtStart(m);
    for (const std::vector<MoveIndex>& moves : part_moves_) KeepAtStart(moves);
    result_.host_peak = host_bytes_;
  }

  void OpenAtStart(MoveIndex m) {
    const Move& move = plan_.moves[m];
    const auto n = static_cast<int64_t>(step_.ops.size());
    int64_t release = static_cast<int64_t>(move.release) - n;
    if (!move.clean) {
      const uint32_t out = CyclicDistance(move.after, move.release, step_.ops.size());
      release = static_cast<int64_t>(move.after) - n + (out == 0 ? n : out);
    }
    const int64_t reserve = release + CyclicDistance(move.release, move.reserve, step_.ops.size());
    const int64_t ready = reserve + CyclicDistance(move.reserve, move.ready, step_.ops.size());
    if (ready < 0) return;
    if (release >= 0 && move.clean) return;
    Hold(m);
    out_.done[m] = 1;
    if (release >= 0) return;
    away_[move.buffer].push_back(m);
    ++unready_[move.buffer];
    if (reserve >= 0) {
      device_ -= move.bytes;
    } else {
      in_.done[m] = 1;
    }
  }

  // A kept copy bridges the time between two moves of a part; that time may include the start.
  void KeepAtStart(const std::vector<MoveIndex>& moves) {
    for (size_t i = 0; i < moves.size(); ++i) {
      const Move& move = plan_.moves[moves[i]];
      const Move& next = plan_.moves[moves[(i + 1) % moves.size()]];
      if (!move.keeps_copy || !next.clean || !step_.buffers[move.buffer].persistent) continue;
      const size_t n = step_.ops.size();
      const uint32_t gap = CyclicDistance(move.ready, next.release, n);
      const bool over_start = move.ready + (gap == 0 ? n : gap) >= n;
      if (over_start && !host_[part_[moves[i]]].held) Hold(moves[i]);
    }
  }

  // --- one iteration ---

  bool Iteration(int number) {
    const double start = now_;
    ResetCounts();
    iteration_start_ = start;
    for (OpIndex i = 0; i < step_.ops.size(); ++i) {
      if (number == 2 && i == step_.ops.size() / 2) {
        rate_factor_ = options_.disturbance.late_rate_factor;
      }
      if (!Boundary(i) || !Operation(i)) return false;
    }
    result_.iteration_ns.push_back(now_ - start);
    CloseSpans();
    return true;
  }

  bool IsSteady() const {
    const std::vector<double>& t = result_.iteration_ns;
    const size_t least = options_.disturbance.late_rate_factor == 1 ? 4 : 8;
    if (t.size() < least) return false;
    for (size_t i = t.size() - 2; i < t.size(); ++i) {
      if (std::abs(t[i] - t[i - 1]) > 0.5 + 1e-9 * t[i]) return false;
    }
    return true;
  }

  void ResetCounts() {
    result_.wait_out_ns = result_.wait_in_ns = result_.safepoint_ns = result_.ideal_ns = 0;
    result_.safepoints = 0;
    result_.bytes_out = result_.bytes_in = 0;
    result_.spans.clear();
    result_.residency.clear();
    out_.busy_ns = in_.busy_ns = 0;
    Sample(0);
  }

  bool Boundary(OpIndex i) {
    for (MoveIndex m : release_[i]) {
      if (!plan_.moves[m].clean && !Wait(m, &out_, i)) return false;
    }
    Safepoint(i);
    for (MoveIndex m : release_[i]) {
      if (!Release(m, i)) return false;
    }
    for (BufferIndex b : born_[i]) device_ += step_.buffers[b].bytes;
    for (MoveIndex m : reserve_[i]) {
      device_ += plan_.moves[m].bytes;
      result_.bytes_in += plan_.moves[m].bytes;
      Allow(m, &in_);
    }
    if (device_ > machine_.device_budget) {
      return Refuse("operation " + std::to_string(i) + " needs " + std::to_string(device_) +
                    " bytes on the device, and the budget is " +
                    std::to_string(machine_.device_budget) + Blame(i));
    }
    result_.device_peak = std::max(result_.device_peak, device_);
    Sample(now_);
    for (MoveIndex m : ready_[i]) {
      if (!Wait(m, &in_, i)) return false;
    }
    for (MoveIndex m : ready_[i]) Ready(m);
    return true;
  }

  // Which buffer tipped the scale: the last that took memory at this boundary.
  std::string Blame(OpIndex i) const {
    if (!reserve_[i].empty())
      return " (with " + MoveName(plan_, reserve_[i].back()) + " coming back)";
    if (!born_[i].empty()) return " (with buffer " + std::to_string(born_[i].back()) + " born)";
    return "";
  }

  void Safepoint(OpIndex i) {
    if (release_[i].empty() && ready_[i].empty()) return;
    ++result_.safepoints;
    const double begin = now_;
    AdvanceTo(now_ + static_cast<double>(machine_.safepoint));
    result_.safepoint_ns += now_ - begin;
    AddSpan(Span::Kind::kSafepoint, i, begin, now_);
  }

  bool Release(MoveIndex m, OpIndex i) {
    const Move& move = plan_.moves[m];
    const HostCopy& copy = host_[part_[m]];
    const std::string away = "at operation " + std::to_string(i) + ", " + MoveName(plan_, m);
    if (!copy.held) return Refuse(away + " is clean, and the host has no copy of it");
    if (copy.version != version_[move.buffer]) {
      return Refuse(away + " leaves with a host copy that is stale: the buffer was written after");
    }
    for (MoveIndex other : away_[move.buffer]) {
      if (Overlap(plan_.moves[other], move)) {
        return Refuse(away + " takes bytes that " + MoveName(plan_, other) + " has taken already");
      }
    }
    device_ -= move.bytes;
    away_[move.buffer].push_back(m);
    ++unready_[move.buffer];
    return true;
  }

  static bool Overlap(const Move& a, const Move& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  void Ready(MoveIndex m) {
    const Move& move = plan_.moves[m];
    std::vector<MoveIndex>& away = away_[move.buffer];
    away.erase(std::find(away.begin(), away.end(), m));
    --unready_[move.buffer];
    if (!move.keeps_copy) Drop(m);
    Sample(now_);
  }

  bool Operation(OpIndex i) {
    const core::StepOp& op = step_.ops[i];
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      const BufferIndex b = step_.accesses[a].buffer;
      if (unready_[b] == 0) continue;
      return Refuse("operation " + std::to_string(i) + " uses buffer " + std::to_string(b) +
                    ", which is not resident: " + MoveName(plan_, away_[b].front()) +
                    " has it away");
    }
    const double begin = now_;
    const double noise = options_.disturbance.duration_noise;
    const double factor = 1 + (noise == 0 ? 0 : noise * Noise(options_.disturbance.seed, i));
    AdvanceTo(now_ + static_cast<double>(op.duration) * factor);
    result_.ideal_ns += static_cast<double>(op.duration) * factor;
    AddSpan(Span::Kind::kOperation, i, begin, now_);
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      if (step_.accesses[a].write) ++version_[step_.accesses[a].buffer];
    }
    for (BufferIndex b : freed_[i]) {
      if (!Free(b, i)) return false;
    }
    for (MoveIndex m : after_[i]) {
      if (!CopyOut(m, i)) return false;
    }
    Sample(now_);
    return true;
  }

  bool Free(BufferIndex b, OpIndex i) {
    device_ -= step_.buffers[b].bytes;
    if (held_of_[b] == 0) return true;
    return Refuse("after operation " + std::to_string(i) + " buffer " + std::to_string(b) +
                  " is freed, and a host copy of it is still kept");
  }

  bool CopyOut(MoveIndex m, OpIndex i) {
    const Move& move = plan_.moves[m];
    const std::string when = "after operation " + std::to_string(i) + ", " + MoveName(plan_, m);
    for (MoveIndex other : away_[move.buffer]) {
      if (Overlap(plan_.moves[other], move)) {
        return Refuse(when + " copies out bytes that " + MoveName(plan_, other) + " has away");
      }
    }
    if (host_[part_[m]].held) {
      return Refuse(when + " copies out bytes whose earlier host copy is still kept");
    }
    Hold(m);
    if (host_bytes_ > machine_.host_budget) {
      return Refuse(when + " brings the host to " + std::to_string(host_bytes_) +
                    " bytes, and the budget is " + std::to_string(machine_.host_budget));
    }
    result_.bytes_out += move.bytes;
    Allow(m, &out_);
    return true;
  }

  void Hold(MoveIndex m) {
    const Move& move = plan_.moves[m];
    host_[part_[m]] = {true, version_[move.buffer]};
    ++held_of_[move.buffer];
    host_bytes_ += move.bytes;
    result_.host_peak = std::max(result_.host_peak, host_bytes_);
  }

  void Drop(MoveIndex m) {
    host_[part_[m]].held = false;
    --held_of_[plan_.moves[m].buffer];
    host_bytes_ -= plan_.moves[m].bytes;
  }

  bool Refuse(const std::string& sentence) {
    result_.refusal = sentence;
    return false;
  }

  // --- time and links ---

  void Allow(MoveIndex m, Link* link) {
    link->allowed[m] = 1;
    link->done[m] = 0;
    StartNext(link);
  }

  void StartNext(Link* link) {
    if (link->busy || link->queue->empty()) return;
    const MoveIndex m = (*link->queue)[link->head];
    if (!link->allowed[m]) return;
    link->allowed[m] = 0;
    link->busy = true;
    link->remaining = static_cast<double>(plan_.moves[m].bytes);
    link->began = now_;
  }

  double RatePerNs(const Link& link) const {
    const bool out = &link == &out_;
    const bool both = out_.busy && in_.busy;
    const double rate = out ? (both ? machine_.out_rate_duplex : machine_.out_rate)
                            : (both ? machine_.in_rate_duplex : machine_.in_rate);
    return rate * rate_factor_ * 1e-9;
  }

  double NextEnd() const {
    double end = kNever;
    for (const Link* link : {&out_, &in_}) {
      if (link->busy) end = std::min(end, now_ + link->remaining / RatePerNs(*link));
    }
    return end;
  }

  // Both links move on to `time`, at which or before which at most one of their copies ends.
  void Flow(double time) {
    const double rates[2] = {RatePerNs(out_), RatePerNs(in_)};
    Link* const links[2] = {&out_, &in_};
    for (int i = 0; i < 2; ++i) {
      if (!links[i]->busy) continue;
      links[i]->remaining -= (time - now_) * rates[i];
      links[i]->busy_ns += time - now_;
    }
    now_ = time;
    for (Link* link : links) {
      if (link->busy && IsOver(link->remaining / RatePerNs(*link))) Finish(link);
    }
    for (Link* link : links) StartNext(link);
  }

  // After days, what is left of a copy may be too short for the clock to tell.
  bool IsOver(double left_ns) const { return left_ns <= 1e-2 || now_ + left_ns <= now_; }

  void Finish(Link* link) {
    const MoveIndex m = (*link->queue)[link->head];
    link->busy = false;
    link->done[m] = 1;
    link->head = (link->head + 1) % link->queue->size();
    AddSpan(link == &out_ ? Span::Kind::kCopyOut : Span::Kind::kCopyIn, m, link->began, now_);
  }

  void AdvanceTo(double time) {
    while (now_ < time) Flow(std::min(time, NextEnd()));
  }

  bool Wait(MoveIndex m, Link* link, OpIndex i) {
    const double begin = now_;
    const bool out = link == &out_;
    while (!link->done[m]) {
      const double end = NextEnd();
      if (end == kNever) return RefuseDeadlock(m, *link, i);
      Flow(end);
    }
    (out ? result_.wait_out_ns : result_.wait_in_ns) += now_ - begin;
    AddSpan(out ? Span::Kind::kWaitOut : Span::Kind::kWaitIn, i, begin, now_);
    return true;
  }

  bool RefuseDeadlock(MoveIndex m, const Link& link, OpIndex i) {
    const bool out = &link == &out_;
    const MoveIndex head = (*link.queue)[link.head];
    const Move& move = plan_.moves[head];
    const std::string what = out ? "out" : "in";
    return Refuse("operation " + std::to_string(i) + " waits for ever for the copy " + what +
                  " of " + MoveName(plan_, m) + ": first in the queue is " + MoveName(plan_, head) +
                  ", which may not start before operation " +
                  std::to_string(out ? move.after : move.reserve) + (out ? " is done" : ""));
  }

  // --- timeline ---

  void AddSpan(Span::Kind kind, uint32_t index, double begin, double end) {
    if (!options_.timeline || end <= begin) return;
    result_.spans.push_back({kind, index, std::max(begin, iteration_start_) - iteration_start_,
                             end - iteration_start_});
  }

  void Sample(double at) {
    if (!options_.timeline) return;
    const double time = std::max(at, iteration_start_) - iteration_start_;
    result_.residency.push_back({time, device_, host_bytes_});
  }

  void CloseSpans() {
    result_.out_busy_ns = out_.busy_ns;
    result_.in_busy_ns = in_.busy_ns;
    if (out_.busy) AddSpan(Span::Kind::kCopyOut, (*out_.queue)[out_.head], out_.began, now_);
    if (in_.busy) AddSpan(Span::Kind::kCopyIn, (*in_.queue)[in_.head], in_.began, now_);
  }

  const Step& step_;
  const Machine& machine_;
  const Plan& plan_;
  const SimulationOptions& options_;
  Simulation result_;

  Boundaries after_, release_, reserve_, ready_;        // moves by operation
  std::vector<std::vector<BufferIndex>> born_, freed_;  // transient buffers by operation
  std::vector<size_t> part_;                            // per move, into the two below
  std::vector<std::vector<MoveIndex>> part_moves_;      // in the order of `release`
  std::vector<HostCopy> host_;

  double now_ = 0;
  double iteration_start_ = 0;
  double rate_factor_ = 1;
  Link out_, in_;
  Bytes device_ = 0;
  Bytes host_bytes_ = 0;
  std::vector<uint64_t> version_;             // per buffer: writes so far
  std::vector<std::vector<MoveIndex>> away_;  // per buffer: moves between release and ready
  std::vector<uint32_t> unready_;             // per buffer: their number
  std::vector<uint32_t> held_of_;             // per buffer: host copies held
};

}  // namespace

Simulation Simulate(const Step& step, const Machine& machine, const Plan& plan,
                    const SimulationOptions& options) {
  return Run(step, machine, plan, options).Execute();
}

Bytes LivePeak(const Step& step, OpIndex* at) {
  std::vector<int64_t> change(step.ops.size() + 1, 0);
  int64_t live = 0, peak = 0;
  for (const core::StepBuffer& b : step.buffers) {
    const auto bytes = static_cast<int64_t>(b.bytes);
    if (b.persistent) {
      live += bytes;
    } else {
      change[b.born] += bytes;
      change[b.freed + 1] -= bytes;
    }
  }
  for (OpIndex i = 0; i < step.ops.size(); ++i) {
    live += change[i];
    if (live <= peak) continue;
    peak = live;
    if (at != nullptr) *at = i;
  }
  return static_cast<Bytes>(peak);
}

Bytes WorkingSetFloor(const Step& step, const Machine& machine) {
  const size_t n = step.ops.size();
  std::vector<std::vector<BufferIndex>> needed(n);
  for (OpIndex i = 0; i < n; ++i) {
    const core::StepOp& op = step.ops[i];
    for (uint32_t a = op.first_access; a < op.first_access + op.access_count; ++a) {
      needed[i].push_back(step.accesses[a].buffer);
    }
  }
  std::vector<int64_t> change(n + 1, 0);
  int64_t fixed = 0, floor = 0;
  for (BufferIndex b = 0; b < step.buffers.size(); ++b) {
    const core::StepBuffer& buffer = step.buffers[b];
    const auto bytes = static_cast<int64_t>(buffer.bytes);
    const bool stays = !buffer.movable || buffer.bytes < machine.min_bytes;
    if (stays && buffer.persistent) fixed += bytes;
    if (buffer.persistent) continue;
    if (stays) {
      change[buffer.born] += bytes;
      change[buffer.freed + 1] -= bytes;
    } else {
      needed[buffer.born].push_back(b);
      needed[buffer.freed].push_back(b);
    }
  }
  for (OpIndex i = 0; i < n; ++i) {
    fixed += change[i];
    std::sort(needed[i].begin(), needed[i].end());
    needed[i].erase(std::unique(needed[i].begin(), needed[i].end()), needed[i].end());
    int64_t used = fixed;
    for (BufferIndex b : needed[i]) {
      const core::StepBuffer& buffer = step.buffers[b];
      const bool stays = !buffer.movable || buffer.bytes < machine.min_bytes;
      used += stays ? 0 : static_cast<int64_t>(buffer.bytes);
    }
    floor = std::max(floor, used);
  }
  return static_cast<Bytes>(floor);
}

}  // namespace tidemark::steps
