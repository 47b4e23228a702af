#include "core/planner/evaluate.h"

#include <algorithm>
#include <cmath>

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostIterations = 8;
constexpr double kSteadyNs = 0.5;

// To the nearest, halves up; `time` is 0 or more. By hand, since the preloaded library must not
// need libm.
Nanoseconds Rounded(double time) {
  const auto whole = static_cast<Nanoseconds>(time);
  return time - static_cast<double>(whole) >= 0.5 ? whole + 1 : whole;
}

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

bool Evaluator::Prepare() {
  const size_t moves = plan_->moves.size();
  if (!Group(&Move::release, &by_release_) || !Group(&Move::ready, &by_ready_)) return false;
  for (int d = 0; d < 2; ++d) {
    copy_[d].Clear();
    before_[d].Clear();
    move_of_[d].Clear();
    noted_[d] = 0;
    if (!copy_[d].Resize(moves, kNone) || !before_[d].Resize(moves, kNone)) return false;
  }
  const uint32_t n = timeline_->ops();
  return wait_out_.Resize(n) && wait_in_.Resize(n) && out_done_at_.Resize(moves) &&
         in_done_at_.Resize(moves);
}

Evaluator::Result Evaluator::Run(const Timeline& timeline, const Machine& machine, Plan* plan) {
  timeline_ = &timeline;
  machine_ = &machine;
  plan_ = plan;
  if (!Prepare()) return Result::kNoMemory;
  links_.Start(machine);
  double time = 0, last = -1;
  for (uint32_t k = 0; k < kMostIterations; ++k) {
    const double start = links_.now();
    const Result result = Iterate(k);
    if (result != Result::kDone) return result;
    time = links_.now() - start;
    if (k >= 1 && std::fabs(time - last) < kSteadyNs) break;
    last = time;
  }
  plan->step_time = Rounded(time);
  plan->ideal_time = timeline.ideal();
  plan->stall_time = Rounded(stall_);
  return CountBytes(timeline, plan) ? Result::kDone : Result::kNoMemory;
}

Evaluator::Result Evaluator::Iterate(uint32_t iteration) {
  iteration_ = iteration;
  next_[kOut] = next_[kIn] = 0;
  stall_ = 0;
  plan_->safepoints = 0;
  for (int d = 0; d < 2; ++d) {
    std::swap(before_[d], copy_[d]);
    std::fill(copy_[d].begin(), copy_[d].end(), kNone);
  }
  for (OpIndex i = 0; i < timeline_->ops(); ++i) {
    const Result result = Boundary(i);
    if (result != Result::kDone) return result;
    links_.AdvanceTo(links_.now() + static_cast<double>(timeline_->step().ops[i].duration));
    if (!PutReady(kOut, i)) return Result::kNoMemory;
  }
  return Result::kDone;
}

Evaluator::Result Evaluator::Boundary(OpIndex i) {
  NoteDone(i);
  const bool releases = by_release_.first[i] != by_release_.first[i + 1];
  const bool readies = by_ready_.first[i] != by_ready_.first[i + 1];
  const double before = links_.now();
  if (releases) {
    const Result result = WaitFor(kOut, by_release_, i);
    if (result != Result::kDone) return result;
  }
  wait_out_[i] = links_.now() - before;
  if (releases || readies) {
    ++plan_->safepoints;
    links_.AdvanceTo(links_.now() + static_cast<double>(machine_->safepoint));
  }
  if (!PutReady(kIn, i)) return Result::kNoMemory;
  const double then = links_.now();
  if (readies) {
    const Result result = WaitFor(kIn, by_ready_, i);
    if (result != Result::kDone) return result;
  }
  wait_in_[i] = links_.now() - then;
  stall_ += wait_out_[i] + wait_in_[i];
  return Result::kDone;
}

bool Evaluator::WrapsBeforeWait(Direction direction, const Move& move) const {
  return direction == kOut ? move.release <= move.after : move.ready < move.reserve;
}

Evaluator::Result Evaluator::WaitFor(Direction direction, const ByOp& group, OpIndex i) {
  for (uint32_t k = group.first[i]; k < group.first[i + 1]; ++k) {
    const MoveIndex m = group.list[k];
    const Move& move = plan_->moves[m];
    if (direction == kOut && move.clean) continue;
    const bool wraps = WrapsBeforeWait(direction, move);
    const uint32_t copy = (wraps ? before_ : copy_)[direction][m];
    if (copy == kNone && wraps && iteration_ == 0) continue;  // was done before the first one
    if (copy == kNone) return Result::kLocked;
    if (!links_.IsDone(direction, copy)) links_.AdvanceUntilDone(direction, copy);
  }
  return Result::kDone;
}

bool Evaluator::PutReady(Direction direction, OpIndex i) {
  const Array<MoveIndex>& queue = direction == kOut ? plan_->out_queue : plan_->in_queue;
  size_t& next = next_[direction];
  for (; next < queue.size(); ++next) {
    const Move& move = plan_->moves[queue[next]];
    if ((direction == kOut ? move.after : move.reserve) > i) break;
    const uint32_t copy = links_.Put(direction, move.bytes);
    if (copy == Links::kNoMemoryLeft || !move_of_[direction].Append(queue[next])) return false;
    copy_[direction][queue[next]] = copy;
  }
  return true;
}

void Evaluator::NoteDone(OpIndex i) {
  for (Direction d : {kOut, kIn}) {
    Array<OpIndex>& done_at = d == kOut ? out_done_at_ : in_done_at_;
    while (noted_[d] < move_of_[d].size() && links_.IsDone(d, noted_[d])) {
      done_at[move_of_[d][noted_[d]++]] = i;
    }
  }
}

}  // namespace tidemark::core::planner
