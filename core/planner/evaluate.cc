#include "core/planner/evaluate.h"

#include <algorithm>
#include <limits>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostIterations = 8;
constexpr double kSteadyNs = 0.5;
constexpr double kRounding = 1 + 1e-12;  // of times that should be equal

// To the nearest, halves up, and at most kEndlessStep; `time` is 0 or more. By hand, since the
// preloaded library must not need libm.
Nanoseconds Rounded(double time) {
  if (time >= static_cast<double>(kEndlessStep)) return kEndlessStep;
  const auto whole = static_cast<Nanoseconds>(time);
  return time - static_cast<double>(whole) >= 0.5 ? whole + 1 : whole;
}

bool IsClose(double a, double b) { return a - b < kSteadyNs && b - a < kSteadyNs; }

}  // namespace

bool Evaluator::Group(OpIndex Move::*when, ByOp* group) {
  group->first.Clear();
  if (!group->first.Resize(timeline_->ops() + 1, 0) || !group->list.Resize(plan_->moves.size())) {
    return false;
  }
  for (const Move& move : plan_->moves) ++group->first[move.*when];
  uint32_t end = 0;
  for (uint32_t& first : group->first) first = end += first;
  for (MoveIndex m = static_cast<MoveIndex>(plan_->moves.size()); m-- > 0;) {
    group->list[--group->first[plan_->moves[m].*when]] = m;
  }
  return true;
}

bool Evaluator::Line(Direction direction) {
  Link& link = links_[direction];
  const bool is_out = direction == kOut;
  const Array<MoveIndex>& queue = is_out ? plan_->out_queue : plan_->in_queue;
  const double alone = is_out ? machine_->out_rate : machine_->in_rate;
  const double duplex = is_out ? machine_->out_rate_duplex : machine_->in_rate_duplex;
  if (!link.queue.Resize(queue.size()) || !link.place.Resize(plan_->moves.size()) ||
      !link.done_at.Resize(plan_->moves.size())) {
    return false;
  }
  for (uint32_t k = 0; k < queue.size(); ++k) {
    const Move& move = plan_->moves[queue[k]];
    link.queue[k] = {queue[k], is_out ? move.after : move.reserve,
                     static_cast<double>(move.bytes) * 1e9 / alone};
    link.place[queue[k]] = k;
  }
  link.slow = alone / duplex;
  link.put = link.done = link.noted = 0;
  link.head = link.note = 0;
  link.left = queue.empty() ? 0 : link.queue[0].work;
  return true;
}

bool Evaluator::Prepare() {
  now_ = 0;
  return Group(&Move::release, &by_release_) && Group(&Move::ready, &by_ready_) && Line(kOut) &&
         Line(kIn) && wait_out_.Resize(timeline_->ops());
}

Evaluator::Result Evaluator::Run(const Timeline& timeline, const Machine& machine, double most,
                                 Plan* plan) {
  timeline_ = &timeline;
  machine_ = &machine;
  plan_ = plan;
  work_ = plan->moves.size();
  if (!Prepare()) return Result::kNoMemory;
  double time = 0, last = -1;
  for (uint32_t k = 0; k < kMostIterations; ++k) {
    const double start = now_;
    const Result result = Iterate(k, most);
    if (result != Result::kDone) return result;
    time = now_ - start;
    if (k >= 1 && IsClose(time, last)) break;
    last = time;
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

// An iteration never takes longer than the ones after it: what was put before only adds work.
Evaluator::Result Evaluator::Iterate(uint32_t iteration, double most) {
  iteration_ = iteration;
  stall_ = 0;
  plan_->safepoints = 0;
  links_[kOut].next = links_[kIn].next = 0;
  const double spare = most - static_cast<double>(timeline_->ideal());
  for (OpIndex i = 0; i < timeline_->ops(); ++i) {
    ++work_;
    const Result result = Boundary(i);
    if (result != Result::kDone) return result;
    if (stall_ + static_cast<double>(plan_->safepoints * machine_->safepoint) > spare) {
      return Result::kSlow;
    }
    AdvanceTo(now_ + static_cast<double>(timeline_->step().ops[i].duration));
    PutReady(&links_[kOut], i);
  }
  return Result::kDone;
}

Evaluator::Result Evaluator::Boundary(OpIndex i) {
  const bool releases = by_release_.first[i] != by_release_.first[i + 1];
  const bool readies = by_ready_.first[i] != by_ready_.first[i + 1];
  if (machine_->safepoint > 0) NoteDone(i);
  const double before = now_;
  if (releases) {
    const Result result = WaitFor(kOut, by_release_, i);
    if (result != Result::kDone) return result;
  }
  wait_out_[i] = now_ - before;
  if (releases || readies) {
    ++plan_->safepoints;
    AdvanceTo(now_ + static_cast<double>(machine_->safepoint));
  }
  PutReady(&links_[kIn], i);
  const double then = now_;
  if (readies) {
    const Result result = WaitFor(kIn, by_ready_, i);
    if (result != Result::kDone) return result;
  }
  stall_ += wait_out_[i] + (now_ - then);
  return Result::kDone;
}

bool Evaluator::WrapsBeforeWait(Direction direction, const Move& move) const {
  return direction == kOut ? move.release <= move.after : move.ready < move.reserve;
}

Evaluator::Result Evaluator::WaitFor(Direction direction, const ByOp& group, OpIndex i) {
  Link& link = links_[direction];
  for (uint32_t k = group.first[i]; k < group.first[i + 1]; ++k) {
    const MoveIndex m = group.list[k];
    const Move& move = plan_->moves[m];
    if (direction == kOut && move.clean) continue;
    uint64_t copy = iteration_ * uint64_t{link.queue.size()} + link.place[m];
    if (WrapsBeforeWait(direction, move)) {
      if (iteration_ == 0) continue;  // was done before the first one
      copy -= link.queue.size();
    }
    if (copy >= link.put) return Result::kLocked;
    while (link.done <= copy) Pass(NextEvent());
  }
  return Result::kDone;
}

void Evaluator::PutReady(Link* link, OpIndex i) {
  const auto length = static_cast<uint32_t>(link->queue.size());
  while (link->next < length && link->queue[link->next].gate <= i) {
    ++link->next;
    ++link->put;
  }
}

void Evaluator::NoteDone(OpIndex i) {
  for (Link& link : links_) {
    for (; link.noted < link.done; ++link.noted) {
      link.done_at[link.queue[link.note].move] = i;
      if (++link.note == link.queue.size()) link.note = 0;
    }
  }
}

// Until the first of the heads is done.
double Evaluator::NextEvent() const {
  const Link &out = links_[kOut], &in = links_[kIn];
  if (out.IsBusy() && in.IsBusy()) return std::min(out.left * out.slow, in.left * in.slow);
  if (out.IsBusy()) return out.left;
  return in.IsBusy() ? in.left : std::numeric_limits<double>::infinity();
}

// `duration` is at most NextEvent().
void Evaluator::Pass(double duration) {
  Link &out = links_[kOut], &in = links_[kIn];
  const bool both = out.IsBusy() && in.IsBusy();
  now_ += duration;
  for (Link* link : {&out, &in}) {
    if (!link->IsBusy()) continue;
    const double needed = both ? link->left * link->slow : link->left;
    if (duration * kRounding >= needed) {
      link->Finish();
    } else {
      link->left -= both ? duration / link->slow : duration;
    }
  }
}

void Evaluator::AdvanceTo(double time) {
  while (now_ < time) {
    const double event = NextEvent();
    if (now_ + event > time) {
      Pass(time - now_);
      break;
    }
    Pass(event);
  }
  now_ = std::max(now_, time);
}

}  // namespace tidemark::core::planner
