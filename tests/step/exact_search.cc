// A state is what holds at a boundary: each piece's status, the clock, and what both queues still
// have to copy. States are expanded operation by operation; of states with the same statuses those
// that are late in every respect are dropped, which is sound because every time is a maximum of
// sums of earlier times, unless the directions slow each other down: then only equal states merge.
//
// Choices that are skipped because another one is never worse:
// - A queue entry that waits while its link serves a later one: it could have been queued later.
// - Leaving or copying out where nothing ahead of the next use (the next write) exceeds the budget.
// - Without safepoint cost: a release that the operation ahead does not need.
// - Without safepoint cost and host limit: being ready before the next use, and copies in that
// start
//   at one boundary in another order than that of their next uses.

#include "tests/step/exact_search.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/step/exact_pieces.h"

namespace tidemark::steps {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kTiny = 1e-6;

constexpr char kDead = 'x';    // not alive
constexpr char kDirty = 'd';   // resident, nothing on the host
constexpr char kCopied = 'h';  // resident; its host copy is valid, or on its way
constexpr char kAway = 'a';    // not on the device
constexpr char kComing = 'i';  // holds device memory, cannot be used yet

struct Copy {
  int piece;
  double left;
};

struct State {
  std::array<char, kExactPieces> status{};
  double clock = 0;
  std::vector<Copy> out, in;
};

using Order = std::vector<int>;

bool Holds(const Order& order, int piece) {
  return std::find(order.begin(), order.end(), piece) != order.end();
}
bool Holds(const std::vector<Copy>& queue, int piece) {
  return std::any_of(queue.begin(), queue.end(), [&](const Copy& c) { return c.piece == piece; });
}
Order Subset(const Order& from, uint32_t mask) {
  Order chosen;
  for (size_t i = 0; i < from.size(); ++i) {
    if ((mask >> i) & 1) chosen.push_back(from[i]);
  }
  return chosen;
}

class Search {
 public:
  Search(const PieceStep& step, ExactGoal goal, size_t most_states)
      : step_(step), goal_(goal), most_states_(most_states) {
    loss_ = step.out_duplex < step.out_rate || step.in_duplex < step.in_rate;
    lazy_release_ = step.safepoint == 0 || goal != ExactGoal::kTime;
    lazy_ready_ = step.safepoint == 0 && step.host == kNever;
  }

  ExactAnswer Run() {
    const int cuts = step_.persistent ? step_.ops : 1;
    for (cut_ = 0; cut_ < cuts && !gave_up_; ++cut_) GuessStart(0, State());
    return {!gave_up_, best_ < kNever, best_ < kNever ? best_ : 0, states_};
  }

 private:
  using Layer = std::map<std::string, std::vector<State>>;

  bool IsTime() const { return goal_ == ExactGoal::kTime; }
  int Op(int k) const { return (cut_ + k) % step_.ops; }
  int Count() const { return static_cast<int>(step_.pieces.size()); }
  const Piece& At(int p) const { return step_.pieces[p]; }
  bool IsTwin(int p) const { return p > 0 && At(p).SameAs(At(p - 1)); }

  void GuessStart(int p, State state);
  void FromStart(const State& start);
  void Expand(const State& before, int k);
  void ChooseRelease(const State& state);
  void ChooseReserve(const State& state, const Order& release);
  void OrderReserve(const State& state, const Order& release, Order reserve);
  void ChooseReady(const State& state, const Order& release, const Order& reserve);
  void ChooseKeep(const State& state, const Order& release, const Order& reserve,
                  const Order& ready);
  void RunBoundary(State state, const Order& release, const Order& reserve, const Order& ready);
  void RunOp(State state);
  void ChooseCopies(const State& state);
  void Insert(State state);
  void Sort(State* state) const;

  Order With(const State& state, const char* statuses) const;
  bool Fits(const State& state, const Order& release, const Order& reserve) const;
  double HostBytes(const State& state) const;
  void Release(State* state, int piece) const;
  void Advance(State* state, double time) const;
  void Wait(State* state, std::vector<Copy> State::*queue, int piece) const;
  double Rate(const State& state, bool out) const;
  bool IsNoWorse(const State& a, const State& b) const;
  std::vector<double> Times(const State& state) const;

  const PieceStep& step_;
  const ExactGoal goal_;
  const size_t most_states_;
  bool loss_ = false;
  bool lazy_release_ = false, lazy_ready_ = false;
  int cut_ = 0;
  int k_ = 0;   // the operation being expanded, counted from the cut ...
  int op_ = 0;  // ... and from the step's start
  double remaining_ = 0;
  Layer next_;
  double best_ = kNever;
  size_t states_ = 0;
  bool gave_up_ = false;
};

// What the pieces that are alive across the cut are there; twins in rising order, as Sort has it.
void Search::GuessStart(int p, State state) {
  if (gave_up_) return;
  if (p == Count()) {
    if (HostBytes(state) <= step_.host) FromStart(state);
    return;
  }
  const int op = Op(0);
  const int before = (op + step_.ops - 1) % step_.ops;
  const bool crosses = At(p).persistent || (op != 0 && At(p).alive[before] && At(p).alive[op]);
  for (const char guess : std::string(crosses ? "adhi" : "x")) {
    if (IsTwin(p) && guess < state.status[p - 1]) continue;
    if ((guess == kAway || guess == kComing) && !At(p).idle[before]) continue;
    if (guess == kComing && lazy_ready_) continue;
    state.status[p] = guess;
    GuessStart(p + 1, state);
  }
}

void Search::FromStart(const State& start) {
  Layer layer;
  layer[""].push_back(start);
  remaining_ = 0;
  for (const double duration : step_.duration) remaining_ += IsTime() ? duration : 0;
  for (int k = 0; k < step_.ops && !gave_up_; ++k) {
    next_.clear();
    k_ = k;
    op_ = Op(k);
    remaining_ -= IsTime() ? step_.duration[op_] : 0;
    for (const auto& [key, states] : layer) {
      for (const State& state : states) Expand(state, k);
    }
    layer.swap(next_);
  }
  if (gave_up_) return;
  for (const auto& [key, states] : layer) {
    for (const State& state : states) {
      if (state.status != start.status || !state.out.empty() || !state.in.empty()) continue;
      best_ = std::min(best_, state.clock);
    }
  }
}

void Search::Expand(const State& before, int k) {
  if (gave_up_) return;
  State state = before;
  const int op = Op(k);
  for (int p = 0; p < Count(); ++p) {
    if (At(p).persistent || !At(p).alive[op]) continue;
    if (op == 0 || !At(p).alive[op - 1]) state.status[p] = kDirty;
  }
  ChooseRelease(state);
}

Order Search::With(const State& state, const char* statuses) const {
  const std::string wanted = statuses;
  Order found;
  for (int p = 0; p < Count(); ++p) {
    if (wanted.find(state.status[p]) != std::string::npos) found.push_back(p);
  }
  return found;
}

bool Search::Fits(const State& state, const Order& release, const Order& reserve) const {
  double held = step_.held[op_];
  for (int p = 0; p < Count(); ++p) {
    const bool away = state.status[p] == kAway ? !Holds(reserve, p) : Holds(release, p);
    if (away) held -= At(p).bytes;
  }
  return held <= step_.device + kTiny;
}

double Search::HostBytes(const State& state) const {
  double bytes = 0;
  for (const int p : With(state, "hai")) bytes += At(p).bytes;
  return bytes;
}

void Search::ChooseRelease(const State& state) {
  Order can = With(state, IsTime() ? "h" : "hd");
  std::erase_if(can, [&](int p) { return !At(p).idle[op_] || !At(p).worth_leaving[op_]; });
  for (uint32_t mask = 0; mask < uint32_t{1} << can.size(); ++mask) {
    ChooseReserve(state, Subset(can, mask));
  }
}

void Search::ChooseReserve(const State& state, const Order& release) {
  const Order can = With(state, "a");
  for (uint32_t mask = 0; mask < uint32_t{1} << can.size(); ++mask) {
    const Order reserve = Subset(can, mask);
    bool sensible = true;
    for (const int p : can) {
      if (At(p).used[op_] && !Holds(reserve, p)) sensible = false;
      if (!At(p).used[op_] && Holds(reserve, p) && !IsTime()) sensible = false;
      const bool skips_twin = IsTwin(p) && Holds(can, p - 1) && !Holds(reserve, p - 1);
      if (Holds(reserve, p) && skips_twin) sensible = false;
    }
    if (!sensible || !Fits(state, release, reserve)) continue;
    for (size_t r = 0; lazy_release_ && r < release.size() && sensible; ++r) {
      Order fewer = release;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(r));
      sensible = !Fits(state, fewer, reserve);
    }
    if (sensible) OrderReserve(state, release, reserve);
  }
}

void Search::OrderReserve(const State& state, const Order& release, Order reserve) {
  if (lazy_ready_ || !IsTime()) {
    std::stable_sort(reserve.begin(), reserve.end(),
                     [&](int a, int b) { return At(a).next_use[op_] < At(b).next_use[op_]; });
    ChooseReady(state, release, reserve);
    return;
  }
  do {
    bool twins_in_order = true;
    for (size_t i = 0; i < reserve.size(); ++i) {
      for (size_t j = i + 1; j < reserve.size(); ++j) {
        if (reserve[i] > reserve[j] && At(reserve[i]).SameAs(At(reserve[j]))) {
          twins_in_order = false;
        }
      }
    }
    if (twins_in_order) ChooseReady(state, release, reserve);
  } while (std::next_permutation(reserve.begin(), reserve.end()));
}

void Search::ChooseReady(const State& state, const Order& release, const Order& reserve) {
  Order must, may;
  for (int p = 0; p < Count(); ++p) {
    if (state.status[p] != kComing && !Holds(reserve, p)) continue;
    (At(p).used[op_] ? must : may).push_back(p);
  }
  if (lazy_ready_ || !IsTime()) may.clear();
  for (uint32_t mask = 0; mask < uint32_t{1} << may.size(); ++mask) {
    Order ready = Subset(may, mask);
    ready.insert(ready.end(), must.begin(), must.end());
    RunBoundary(state, release, reserve, ready);
  }
}

double Search::Rate(const State& state, bool out) const {
  const bool both = !state.out.empty() && !state.in.empty();
  if (out) return both ? step_.out_duplex : step_.out_rate;
  return both ? step_.in_duplex : step_.in_rate;
}

void Search::Advance(State* state, double time) const {
  double left = time;
  while (left > 0 && !(state->out.empty() && state->in.empty())) {
    double slice = left;
    for (const bool out : {true, false}) {
      const std::vector<Copy>& queue = out ? state->out : state->in;
      if (!queue.empty()) slice = std::min(slice, queue.front().left / Rate(*state, out));
    }
    const double moved[] = {slice * Rate(*state, true), slice * Rate(*state, false)};
    int link = 0;
    for (std::vector<Copy>* queue : {&state->out, &state->in}) {
      const double bytes = moved[link++];
      if (queue->empty()) continue;
      queue->front().left -= bytes;
      if (queue->front().left <= kTiny) queue->erase(queue->begin());
    }
    left -= slice;
  }
  state->clock += time;
}

void Search::Wait(State* state, std::vector<Copy> State::*queue, int piece) const {
  while (Holds(state->*queue, piece)) {
    double slice = kNever;
    if (!state->out.empty()) slice = state->out.front().left / Rate(*state, true);
    if (!state->in.empty()) slice = std::min(slice, state->in.front().left / Rate(*state, false));
    Advance(state, slice);
  }
}

void Search::Release(State* state, int piece) const {
  const bool counts_out = goal_ == ExactGoal::kBytesOut || goal_ == ExactGoal::kBytes;
  if (IsTime())
    Wait(state, &State::out, piece);
  else if (counts_out && state->status[piece] == kDirty)
    state->clock += At(piece).bytes;
  state->status[piece] = kAway;
}

void Search::RunBoundary(State state, const Order& release, const Order& reserve,
                         const Order& ready) {
  for (const int p : release) Release(&state, p);
  if (!IsTime() && HostBytes(state) > step_.host) return;
  if (IsTime() && !(release.empty() && ready.empty())) Advance(&state, step_.safepoint);
  for (const int p : reserve) {
    state.status[p] = kComing;
    if (IsTime())
      state.in.push_back({p, At(p).bytes});
    else if (goal_ != ExactGoal::kBytesOut)
      state.clock += At(p).bytes;
  }
  for (const int p : ready) {
    if (IsTime()) Wait(&state, &State::in, p);
    state.status[p] = kCopied;
  }
  if (step_.host == kNever) return RunOp(state);
  for (uint32_t mask = 0; mask < uint32_t{1} << ready.size(); ++mask) {
    State kept = state;
    for (const int p : Subset(ready, mask)) kept.status[p] = kDirty;
    RunOp(kept);
  }
}

void Search::RunOp(State state) {
  if (IsTime()) Advance(&state, step_.duration[op_]);
  for (int p = 0; p < Count(); ++p) {
    const bool dies =
        !At(p).persistent && At(p).alive[op_] && (op_ + 1 == step_.ops || !At(p).alive[op_ + 1]);
    if (!At(p).written[op_] && !dies) continue;
    if (Holds(state.out, p)) return;  // a copy for nothing
    state.status[p] = dies ? kDead : kDirty;
  }
  ChooseCopies(state);
}

// Any of the pieces that have something to copy, in any order, behind what is queued.
void Search::ChooseCopies(const State& state) {
  if (gave_up_) return;
  Insert(state);
  if (!IsTime()) return;
  for (const int p : With(state, "d")) {
    if (!At(p).worth_copying[op_]) continue;
    if (IsTwin(p) && state.status[p - 1] == kDirty) continue;
    State more = state;
    more.status[p] = kCopied;
    more.out.push_back({p, At(p).bytes});
    if (HostBytes(more) <= step_.host + kTiny) ChooseCopies(more);
  }
}

// Twins are told apart by their places alone: puts them in one order.
void Search::Sort(State* state) const {
  for (int a = 0; a < Count();) {
    int b = a + 1;
    while (b < Count() && IsTwin(b)) ++b;
    Order from;
    for (int p = a; p < b; ++p) from.push_back(p);
    const auto place = [](const std::vector<Copy>& queue, int p) {
      return std::find_if(queue.begin(), queue.end(), [&](const Copy& c) { return c.piece == p; }) -
             queue.begin();
    };
    const State old = *state;
    const auto rank = [&](int p) {
      return std::tuple(old.status[p], Holds(old.out, p), place(old.out, p), place(old.in, p));
    };
    std::stable_sort(from.begin(), from.end(), [&](int x, int y) { return rank(x) < rank(y); });
    for (int p = a; p < b; ++p) state->status[p] = old.status[from[p - a]];
    for (std::vector<Copy>* queue : {&state->out, &state->in}) {
      for (Copy& copy : *queue) {
        if (copy.piece < a || copy.piece >= b) continue;
        copy.piece =
            a + static_cast<int>(std::find(from.begin(), from.end(), copy.piece) - from.begin());
      }
    }
    a = b;
  }
}

// When each thing is done that later times depend on: the clock, both links, each copy.
std::vector<double> Search::Times(const State& state) const {
  std::vector<double> times(Count() + 3, state.clock);
  int link = 0;
  for (const std::vector<Copy>* queue : {&state.out, &state.in}) {
    double at = state.clock;
    for (const Copy& copy : *queue) {
      at += copy.left / (link == 0 ? step_.out_rate : step_.in_rate);
      times[copy.piece] = at;
    }
    times[Count() + 1 + link++] = at;
  }
  return times;
}

bool Search::IsNoWorse(const State& a, const State& b) const {
  if (a.clock > b.clock + kTiny) return false;
  const std::vector<double> ta = Times(a);
  const std::vector<double> tb = Times(b);
  for (size_t i = 0; i < ta.size(); ++i) {
    if (ta[i] > tb[i] + kTiny) return false;
    if (loss_ && ta[i] < tb[i] - kTiny) return false;
  }
  return true;
}

void Search::Insert(State state) {
  if (state.clock + remaining_ >= best_ - kTiny) return;
  Sort(&state);
  std::vector<State>& same = next_[std::string(state.status.begin(), state.status.end())];
  for (const State& other : same) {
    if (IsNoWorse(other, state)) return;
  }
  std::erase_if(same, [&](const State& other) { return IsNoWorse(state, other); });
  same.push_back(std::move(state));
  if (++states_ > most_states_) gave_up_ = true;
}

}  // namespace

ExactAnswer ExactSearch(const core::Step& step, const core::Machine& machine, ExactGoal goal,
                        size_t most_states) {
  PieceStep pieces;
  if (!pieces.Build(step, machine, kExactPieces)) return {};
  return Search(pieces, goal, most_states).Run();
}

}  // namespace tidemark::steps
