#include "core/planner/links.h"

namespace tidemark::core::planner {
namespace {

constexpr double kEqual = 1 + 1e-12;  // times that differ by less are the same

}  // namespace

void Links::Start(const Machine& machine) {
  now_ = 0;
  const double rates[2][2] = {{machine.out_rate, machine.out_rate_duplex},
                              {machine.in_rate, machine.in_rate_duplex}};
  for (const Direction d : {kOut, kIn}) {
    Engine& engine = engines_[d];
    for (const int both : {0, 1}) {
      engine.rate[both] = rates[d][both] / 1e9;
      engine.ns[both] = 1e9 / rates[d][both];
    }
    engine.put = engine.copied = 0;
  }
}

// Of the bytes that are next in the queue; the other one gets nothing new meanwhile.
double Links::TimeToCopy(Direction direction, double bytes) const {
  const Engine& mine = engines_[direction];
  const Engine& other = engines_[direction == kOut ? kIn : kOut];
  if (bytes <= 0) return 0;
  if (!other.IsBusy()) return bytes * mine.ns[0];
  const double other_time = other.Left() * other.ns[1];
  const double time = bytes * mine.ns[1];
  if (time <= other_time) return time;
  return other_time + (bytes - other_time * mine.rate[1]) * mine.ns[0];
}

double Links::TimeUntilDone(Direction direction, double mark) const {
  return TimeToCopy(direction, mark - engines_[direction].copied - kRounding);
}

// Until the first of the queues ends, but at most for so long; one of them is not empty.
void Links::Pass(double most) {
  const bool both = AreBothBusy();
  double slice = most;
  for (const Engine& engine : engines_) {
    if (engine.IsBusy()) slice = std::min(slice, engine.Left() * engine.ns[both]);
  }
  for (Engine& engine : engines_) {
    if (!engine.IsBusy()) continue;
    const bool ends = engine.Left() * engine.ns[both] <= slice * kEqual;
    engine.copied = ends ? engine.put : engine.copied + slice * engine.rate[both];
  }
  now_ += slice;
}

void Links::AdvanceUntilDone(Direction direction, double mark) {
  const Engine& engine = engines_[direction];
  while (!IsDone(direction, mark)) Pass((mark - engine.copied) * engine.ns[AreBothBusy()]);
}

}  // namespace tidemark::core::planner
