#include "core/planner/evaluate.h"

#include <algorithm>
#include <limits>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostIterations = 8;
constexpr double kSteadyNs = 0.5;
constexpr double kSteadyBytes = 1e-3;

// To the nearest, halves up, and at most kEndlessStep; `time` is 0 or more. By hand, since the
// preloaded library must not need libm.
Nanoseconds Rounded(double time) {
  if (time >= static_cast<double>(kEndlessStep)) return kEndlessStep;
  const auto whole = static_cast<Nanoseconds>(time);
  return time - static_cast<double>(whole) >= 0.5 ? whole + 1 : whole;
}

bool IsClose(double a, double b) { return a - b < kSteadyNs && b - a < kSteadyNs; }

}  // namespace

bool Evaluator::LineUp(Direction direction) {
  Line& line = lines_[direction];
  const bool is_out = direction == kOut;
  const Array<MoveIndex>& queue = is_out ? plan_->out_queue : plan_->in_queue;
  line.due.Clear();
  if (!line.queue.Resize(queue.size()) || !line.done_at.Resize(plan_->moves.size()) ||
      !line.due.Resize(timeline_->ops(), kNothingDue)) {
    return false;
  }
  const auto length = static_cast<int64_t>(queue.size());
  double end = 0;
  for (uint32_t k = 0; k < queue.size(); ++k) {
    const Move& move = plan_->moves[queue[k]];
    end += static_cast<double>(move.bytes);
    const uint32_t from = is_out ? move.after + 1 : move.reserve;
    line.queue[k] = {queue[k], from, end};
    is_event_[from] = true;
    // Whether the iteration ends between the copy and the wait for it.
    const bool wraps = is_out ? move.release <= move.after : move.ready < move.reserve;
    int64_t& due = line.due[is_out ? move.release : move.ready];
    due = std::max(due, wraps ? k - length : k);
  }
  line.bytes = end;
  line.next = {0, 0};
  return true;
}

bool Evaluator::Prepare() {
  const uint32_t n = timeline_->ops();
  links_.Start(*machine_);
  remaps_.Clear();
  is_event_.Clear();
  wait_out_.Clear();
  return remaps_.Resize(n, false) && is_event_.Resize(n + 1, false) && wait_out_.Resize(n, 0) &&
         LineUp(kOut) && LineUp(kIn) && ListEvents();
}

bool Evaluator::ListEvents() {
  for (const Move& move : plan_->moves) {
    remaps_[move.release] = remaps_[move.ready] = true;
    is_event_[move.release] = is_event_[move.ready] = true;
  }
  events_.Clear();
  for (OpIndex i = 0; i < timeline_->ops(); ++i) {
    if (is_event_[i] && !events_.Append(i)) return false;
  }
  return true;
}

Evaluator::Result Evaluator::Run(const Timeline& timeline, const Machine& machine, double most,
                                 Plan* plan) {
  timeline_ = &timeline;
  machine_ = &machine;
  plan_ = plan;
  work_ = plan->moves.size();
  if (!Prepare()) return Result::kNoMemory;
  double time = 0, last = -1, left[2] = {0, 0};
  for (uint32_t k = 0; k < kMostIterations; ++k) {
    const double start = links_.now();
    iteration_ = k;
    const Result result = Iterate(most);
    if (result != Result::kDone) return result;
    time = links_.now() - start;
    if (k >= 1 && IsClose(time, last)) break;
    last = time;
    if (IsSteady(left)) break;
  }
  plan->step_time = Rounded(time);
  plan->ideal_time = timeline.ideal();
  plan->stall_time = Rounded(stall_);
  plan->bytes_out = plan->bytes_in = 0;
  for (const Move& move : plan->moves) {
    plan->bytes_in += move.bytes;
    if (!move.clean) plan->bytes_out += move.bytes;
  }
  return Result::kDone;
}

// Whether the next iteration will be as the last one was, since it starts with as much left to copy
// as that one did, or as `left` says. What is left now is put there.
bool Evaluator::IsSteady(double left[2]) {
  bool is_steady = true;
  for (const Direction direction : {kOut, kIn}) {
    const double now = links_.Backlog(direction);
    is_steady &= now - left[direction] < kSteadyBytes && left[direction] - now < kSteadyBytes;
    left[direction] = now;
  }
  return is_steady;
}

// An iteration never takes longer than the ones after it: what was put before only adds work.
Evaluator::Result Evaluator::Iterate(double most) {
  stall_ = 0;
  plan_->safepoints = 0;
  lines_[kOut].put = lines_[kIn].put = 0;
  const double spare = most - static_cast<double>(timeline_->ideal());
  OpIndex at = 0;
  for (const OpIndex i : events_) {
    RunOps(at, i);
    at = i;
    Result result = Boundary(i);
    const double lost = stall_ + static_cast<double>(plan_->safepoints * machine_->safepoint);
    if (result == Result::kDone && lost > spare) result = Result::kSlow;
    if (result == Result::kDone) continue;
    work_ += i + 1;
    return result;
  }
  RunOps(at, timeline_->ops());
  PutReady(kOut, timeline_->ops());
  work_ += timeline_->ops();
  return Result::kDone;
}

Evaluator::Result Evaluator::Boundary(OpIndex i) {
  PutReady(kOut, i);
  const double before = links_.now();
  const Result left = WaitFor(kOut, i);
  if (left != Result::kDone) return left;
  wait_out_[i] = links_.now() - before;
  if (remaps_[i]) {
    ++plan_->safepoints;
    links_.AdvanceTo(links_.now() + static_cast<double>(machine_->safepoint));
  }
  PutReady(kIn, i);
  const double then = links_.now();
  const Result returned = WaitFor(kIn, i);
  stall_ += wait_out_[i] + (links_.now() - then);
  return returned;
}

// Copies of a queue are done in its order: so all that are due are, when the last one is.
Evaluator::Result Evaluator::WaitFor(Direction direction, OpIndex i) {
  const Line& line = lines_[direction];
  const int64_t due = line.due[i];
  if (due == kNothingDue) return Result::kDone;
  const bool is_before = due < 0;                          // put in the iteration before
  if (is_before && iteration_ == 0) return Result::kDone;  // was done before the first one
  if (due >= line.put) return Result::kLocked;
  const int64_t place = is_before ? due + static_cast<int64_t>(line.queue.size()) : due;
  const Copy copy{is_before ? iteration_ - 1 : iteration_, static_cast<uint32_t>(place)};
  links_.AdvanceUntilDone(direction, line.Mark(copy));
  return Result::kDone;
}

void Evaluator::PutReady(Direction direction, uint32_t boundary) {
  Line& line = lines_[direction];
  const uint32_t before = line.put;
  while (line.put < line.queue.size() && line.queue[line.put].from <= boundary) ++line.put;
  if (line.put != before) links_.PutUntil(direction, line.Mark({iteration_, line.put - 1}));
}

// Operations, with nothing at the boundaries between them.
void Evaluator::RunOps(OpIndex from, uint32_t to) {
  if (from == to) return;
  if (machine_->safepoint > 0) {
    NoteDone(kOut, from, to);
    NoteDone(kIn, from, to);
  }
  links_.AdvanceTo(links_.now() + (timeline_->start(to) - timeline_->start(from)));
}

// At which boundaries copies are done, before those operations have been run; what was done during
// the waits at the first one counts for the second.
void Evaluator::NoteDone(Direction direction, OpIndex from, uint32_t to) {
  Line& line = lines_[direction];
  const double start = timeline_->start(from), end = timeline_->start(to);
  const auto is_put = [&](const Copy& copy) {
    return copy.iteration < iteration_ || (copy.iteration == iteration_ && copy.place < line.put);
  };
  for (uint32_t at = from + 1; !line.queue.empty() && is_put(line.next); line.Advance(&line.next)) {
    const double time = start + links_.TimeUntilDone(direction, line.Mark(line.next));
    if (time > end) return;
    while (timeline_->start(at) < time) ++at;
    line.done_at[line.queue[line.next.place].move] = at == timeline_->ops() ? 0 : at;
  }
}

// Copies so far, in all iterations.
uint64_t Evaluator::CountDone(Direction direction) const {
  const Line& line = lines_[direction];
  Copy copy = line.next;
  while (!line.queue.empty() && links_.IsDone(direction, line.Mark(copy))) line.Advance(&copy);
  return copy.iteration * uint64_t{line.queue.size()} + copy.place;
}

}  // namespace tidemark::core::planner
