#include "core/planner/links.h"

#include <algorithm>
#include <limits>

namespace tidemark::core::planner {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

void Links::Start(const Machine& machine) {
  now_ = 0;
  alone_[kOut] = machine.out_rate / 1e9;
  alone_[kIn] = machine.in_rate / 1e9;
  duplex_[kOut] = machine.out_rate_duplex / 1e9;
  duplex_[kIn] = machine.in_rate_duplex / 1e9;
  for (int d = 0; d < 2; ++d) {
    queue_[d].Clear();
    done_[d] = 0;
    head_left_[d] = 0;
    backlog_[d] = 0;
  }
}

uint32_t Links::Put(Direction direction, Bytes bytes) {
  const uint32_t copy = static_cast<uint32_t>(queue_[direction].size());
  if (!queue_[direction].Append(bytes)) return kNoMemoryLeft;
  if (done_[direction] == copy) head_left_[direction] = static_cast<double>(bytes);
  backlog_[direction] += static_cast<double>(bytes);
  return copy;
}

double Links::Rate(Direction direction) const {
  const bool both = done_[kOut] < queue_[kOut].size() && done_[kIn] < queue_[kIn].size();
  return both ? duplex_[direction] : alone_[direction];
}

double Links::TimeToDrain(Direction direction) const {
  const Direction other = direction == kOut ? kIn : kOut;
  const double mine = backlog_[direction], its = backlog_[other];
  if (mine <= 0) return 0;
  if (its <= 0) return mine / alone_[direction];
  const double other_time = its / duplex_[other];
  const double time = mine / duplex_[direction];
  if (time <= other_time) return time;
  return other_time + (mine - other_time * duplex_[direction]) / alone_[direction];
}

double Links::NextEvent() const {
  double next = kNever;
  for (Direction d : {kOut, kIn}) {
    if (done_[d] < queue_[d].size()) next = std::min(next, head_left_[d] / Rate(d));
  }
  return next;
}

void Links::Pass(double duration) {
  const double moved[2] = {duration * Rate(kOut), duration * Rate(kIn)};
  const bool is_end[2] = {
      done_[kOut] < queue_[kOut].size() && moved[kOut] >= head_left_[kOut] * (1 - 1e-12),
      done_[kIn] < queue_[kIn].size() && moved[kIn] >= head_left_[kIn] * (1 - 1e-12)};
  now_ += duration;
  for (Direction d : {kOut, kIn}) {
    if (done_[d] >= queue_[d].size()) continue;
    const double part = is_end[d] ? head_left_[d] : moved[d];
    backlog_[d] -= part;
    head_left_[d] -= part;
    if (!is_end[d]) continue;
    ++done_[d];
    const bool more = done_[d] < queue_[d].size();
    head_left_[d] = more ? static_cast<double>(queue_[d][done_[d]]) : 0;
    if (!more) backlog_[d] = 0;
  }
}

void Links::AdvanceTo(double time) {
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

void Links::AdvanceUntilDone(Direction direction, uint32_t copy) {
  while (!IsDone(direction, copy)) Pass(NextEvent());
}

}  // namespace tidemark::core::planner
