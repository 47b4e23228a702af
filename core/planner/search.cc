#include "core/planner/search.h"

#include <algorithm>
#include <utility>

#include "core/bounds.h"
#include "core/planner/demand_draft.h"
#include "core/planner/safepoints.h"

namespace tidemark::core::planner {
namespace {

struct Recipe {
  double spares = 0.9;         // see SweepOptions
  uint32_t pieces = 128;       // in the device budget; 0: a draft by demand, not by a sweep
  bool keeps_copies = true;    // see SweepOptions
  bool evicts = true;          // SweepOptions::evicts_to_prefetch
  bool yields = false;         // SweepOptions::spares_yield
  double in_speed = 1;         // see SweepOptions
  bool expects_waits = false;  // those of the best plan so far
  double room = 0;             // if not 0, SweepOptions::stays leaves so many largest floors free
  double out_ahead = 0;        // see SweepOptions
  bool goes_round = false;     // only where buffers go round ...
  bool is_short = false;       // ... and the step is short
  bool spares_host = false;    // of each buffer no more leaves than the host holds of all; if short
};

// The most promising first: chosen one after the other, each for what it adds to those before it
// over the cells of the planner's scoreboard. The last ones matter when the host is short of
// memory, or where machines are to be compared.
constexpr Recipe kRecipes[] = {
    {.yields = true},
    {.spares = 0},
    {.pieces = 0},
    {.pieces = 2048, .evicts = false},
    {.yields = true, .expects_waits = true},
    {.spares = 0, .pieces = 16},
    {.spares = 0.6, .expects_waits = true},
    {.pieces = 16},
    {.spares = 0, .keeps_copies = false},
    {.spares = 0, .room = 2, .goes_round = true, .is_short = true},
    {.spares = 0, .out_ahead = 2, .goes_round = true},
    {.spares = 0,
     .pieces = 16,
     .expects_waits = true,
     .room = 4,
     .out_ahead = 0.5,
     .goes_round = true},
    {.yields = true, .expects_waits = true, .out_ahead = 0.5, .goes_round = true, .is_short = true},
    {.pieces = 16, .room = 4, .goes_round = true},
    {.spares = 0, .spares_host = true},
};

constexpr uint32_t kCount = sizeof(kRecipes) / sizeof(kRecipes[0]);
constexpr uint32_t kSparesHost = kCount - 1;

constexpr Bytes kMostPieces = 8192;      // in the live peak
constexpr uint32_t kQuickPieces = 128;   // as many in the budget cost little ...
constexpr uint64_t kQuickWork = 20'000;  // ... if uses and moves are no more; else no sweep
constexpr uint64_t kWorkOfMove = 8;
constexpr uint64_t kShortStep = 2'000;    // operations and uses
constexpr uint64_t kBoundWork = 200'000;  // operations times what opens or closes
// Times closer than this share of the ideal time are equal, and less traffic wins.
constexpr double kSameTime = 1e-5;
// In units of Search::kMostWork, each for one of them.
constexpr uint64_t kHorizonWorkOfOp = 50;
constexpr uint64_t kDemandWorkOfOp = 3;
constexpr uint64_t kDemandWorkOfPart = 19;
constexpr uint64_t kShareWorkOfMove = 9;

}  // namespace

bool Search::Init(const Step& step, const Machine& machine) {
  machine_ = machine;
  horizon_budget_ = kNoLimit;
  spent_ = 0;
  spent_on_prices_ = 0;
  Restart();
  return timeline_.Build(step, machine);
}

void Search::Restart() {
  has_plan_ = false;
  first_work_ = 0;
  waits_.Clear();
}

// Small steps only: the bound costs the square of the operations.
bool Search::BoundTime() {
  least_time_ = timeline_.ideal();
  const uint64_t ops = timeline_.ops();
  if (ops * (ops + timeline_.uses()) > kBoundWork) return true;
  const TimeBound bound = FindTimeBound(timeline_.step(), machine_);
  if (bound.outcome == BoundOutcome::kBound) least_time_ = std::max(least_time_, bound.time);
  return bound.outcome != BoundOutcome::kNoMemory;
}

Found Search::TryRecipes() {
  if (!BoundTime()) return Found::kNoMemory;
  for (uint32_t r = 0; r < kCount; ++r) {
    if (TryRecipe(r) == Found::kNoMemory) return Found::kNoMemory;
    if (IsDone()) break;
    // The others would hardly fit either, and leave no time for the one that spares the host.
    const bool is_first_lost = r == 0 && !has_plan_;
    if (is_first_lost && TryRecipe(kSparesHost) == Found::kNoMemory) return Found::kNoMemory;
  }
  return has_plan_ ? Found::kPlan : Found::kNothing;
}

Found Search::TryQuick(uint32_t recipe) {
  const uint64_t work = timeline_.uses() + kWorkOfMove * best_.moves.size();
  if (has_plan_ && work > kQuickWork) return TryRecipe(kByDemand);
  return TryRecipe(kRecipes[recipe % kCount].pieces <= kQuickPieces ? recipe : 0);
}

Found Search::TryRecipe(uint32_t recipe) {
  const Recipe& r = kRecipes[recipe % kCount];
  const bool is_limited = machine_.host_budget < timeline_.peak();
  if ((!r.keeps_copies || r.spares_host) && !is_limited) return Found::kNothing;
  if ((r.goes_round && !GoesRound()) || (r.is_short && !IsShort())) return Found::kNothing;
  trial_.recipe = recipe;
  if (r.pieces == 0) {
    const DraftResult drafted = DraftByDemand(timeline_, machine_, &draft_);
    if (drafted == DraftResult::kNoMemory) return Found::kNoMemory;
    spent_ += kDemandWorkOfOp * timeline_.ops() + kDemandWorkOfPart * draft_.aways.size();
    return drafted == DraftResult::kDone ? TryDraft() : Found::kNothing;
  }
  SweepOptions options;
  options.spares = r.spares;
  options.keeps_copies = r.keeps_copies;
  if (r.room > 0) options.stays = PartThatStays(r.room);
  if (r.spares_host) options.stays = PartWithoutHost();
  options.out_ahead = r.out_ahead;
  options.evicts_to_prefetch = r.evicts;
  options.spares_yield = r.yields;
  options.in_speed = r.in_speed;
  const Bytes least = std::max<Bytes>(timeline_.peak() / kMostPieces, 1);
  options.piece = RoundUp(std::max(machine_.device_budget / r.pieces, least), machine_.chunk_bytes);
  options.waits_out = r.expects_waits && !waits_.empty() ? &waits_ : nullptr;
  return IsAffordable(options.piece) ? TrySweep(options) : Found::kNothing;
}

uint64_t Search::PiecesOf(Bytes piece) const {
  uint64_t pieces = 0;
  for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
    if (timeline_.CanMove(b)) pieces += (timeline_.buffer(b).bytes + piece - 1) / piece;
  }
  return pieces;
}

// Whether there is time for another sweep, by what the first one took.
bool Search::IsAffordable(Bytes piece) const {
  if (first_work_ == 0) return true;
  const double more = static_cast<double>(PiecesOf(piece)) / static_cast<double>(first_pieces_);
  // Without a plan something has to be left to find out what would be enough.
  const uint64_t most = has_plan_ ? MostSweepWork() : MostSweepWork() / 2;
  return static_cast<double>(spent_) + more * static_cast<double>(first_work_) <=
         static_cast<double>(most);
}

bool Search::IsShort() const { return timeline_.ops() + timeline_.uses() <= kShortStep; }

uint64_t Search::MostSweepWork() const {
  const bool is_small = has_plan_ ? IsSmall(best_) : IsShort();
  if (is_small) return kSweepWorkOfShort;
  if (!TrustsPrices()) return kSweepWork;
  return spent_on_prices_ == 0 ? kSweepWorkBeforePrices : kSweepWorkAfterPrices;
}

// In large steps where most goes round. A short host asks for more than prices know.
bool Search::TrustsPrices() const {
  return has_plan_ && !IsSmall() && GoesRound() && machine_.host_budget >= timeline_.peak();
}

// Whether what is kept across iterations is more than the device holds, so that it leaves and
// returns in a circle.
bool Search::GoesRound() const {
  Bytes kept = 0;
  for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
    if (timeline_.CanMove(b) && timeline_.buffer(b).persistent) kept += timeline_.buffer(b).bytes;
  }
  return kept > machine_.device_budget;
}

// The part of all buffers that the device holds beside `room` times the largest floor.
double Search::PartThatStays(double room) const {
  const double streams = room * static_cast<double>(timeline_.largest_floor());
  const double left = static_cast<double>(machine_.device_budget) - streams;
  return left > 0 ? std::min(left / static_cast<double>(timeline_.peak()), 1.0) : 0;
}

// The part of all buffers that the host cannot hold.
double Search::PartWithoutHost() const {
  return 1 - static_cast<double>(machine_.host_budget) / static_cast<double>(timeline_.peak());
}

Found Search::TrySweep(const SweepOptions& options) {
  const Bytes budget = std::min(machine_.device_budget, timeline_.peak());
  if (horizon_budget_ != budget) {
    if (!horizon_.Build(timeline_, budget)) return Found::kNoMemory;
    spent_ += kHorizonWorkOfOp * timeline_.ops();
    horizon_budget_ = budget;
  }
  // As if the host had room for all, first: what it has not is saved where the moves are written.
  const bool is_limited = machine_.host_budget < timeline_.peak();
  Found found = Found::kNothing;
  fits_host_ = false;
  const uint64_t before = spent_;
  for (const bool minds_host : {false, true}) {
    if (minds_host ? !is_limited : is_limited && !options.keeps_copies) continue;
    Machine machine = machine_;
    if (!minds_host) machine.host_budget = std::max(machine.host_budget, timeline_.peak());
    found = SweepOn(machine, options);
    if (found == Found::kNoMemory || fits_host_) break;
  }
  if (first_work_ == 0) {
    first_work_ = spent_ - before;
    first_pieces_ = sweep_.pieces();
  }
  return found;
}

Found Search::SweepOn(const Machine& machine, const SweepOptions& options) {
  const Sweep::Result swept = sweep_.Run(timeline_, horizon_, machine, options, &draft_);
  if (swept == Sweep::Result::kNoMemory) return Found::kNoMemory;
  spent_ += sweep_.work();
  if (swept == Sweep::Result::kStuck) draft_.aways.Clear();
  const Found found = TryDraft();
  if (found == Found::kPlan && improved_) {
    best_options_ = options;
    best_pieces_ = sweep_.pieces();
  }
  return found;
}

Found Search::TryPrevious(const Plan& previous) {
  if (!ReadMoves(timeline_, machine_, previous, &draft_)) return Found::kNoMemory;
  trial_.recipe = previous.recipe;
  draft_.keeps_parts = true;
  const Found as_it_was = TryDraft();
  draft_.keeps_parts = false;
  if (as_it_was == Found::kNoMemory) return Found::kNoMemory;
  // What was to be back early, for a safepoint's sake, may be late by now.
  if (!ReadMoves(timeline_, machine_, previous, &draft_)) return Found::kNoMemory;
  bool is_same = true;
  for (Away& a : draft_.aways) {
    is_same = is_same && a.ready == timeline_.use(a.use).next;
    a.ready = timeline_.use(a.use).next;
  }
  trial_.recipe = previous.recipe;
  if (!is_same && TryDraft() == Found::kNoMemory) return Found::kNoMemory;
  return Found::kPlan;
}

Found Search::TryDraft(const CoverChoice& choice) {
  improved_ = false;
  const DraftResult covered = CoverDemand(timeline_, machine_, &draft_, choice);
  if (covered == DraftResult::kNoMemory) return Found::kNoMemory;
  if (covered == DraftResult::kCannot) {
    Charge(&draft_);
    return Found::kNothing;
  }
  const double same = static_cast<double>(timeline_.ideal()) * kSameTime;
  const double most =
      has_plan_ ? static_cast<double>(best_.step_time) + same + 1 : Evaluator::kAnyTime;
  const Found found = ValueDraft(most);
  return found == Found::kPlan ? KeepIfBetter() : found;
}

// Writes a draft that holds the budget into trial_ and values it. kNothing: no plan, or one that
// takes longer than `most`.
Found Search::ValueDraft(double most) {
  const DraftResult result = WriteMoves(timeline_, machine_, &draft_, &trial_);
  Charge(&draft_);
  if (result == DraftResult::kNoMemory) return Found::kNoMemory;
  if (result == DraftResult::kCannot) return Found::kNothing;
  fits_host_ = true;
  const bool shares = machine_.safepoint > 0;
  const Evaluator::Result valued =
      evaluator_.Run(timeline_, machine_, shares ? most + SafepointsAtMost() : most, &trial_);
  spent_ += evaluator_.work();
  if (valued == Evaluator::Result::kNoMemory) return Found::kNoMemory;
  if (valued != Evaluator::Result::kDone) return Found::kNothing;
  if (!trial_waits_.CopyFrom(evaluator_.waits_out())) return Found::kNoMemory;
  return shares && !ShareInTrial(most) ? Found::kNoMemory : Found::kPlan;
}

// What fewer safepoints could save in the trial.
double Search::SafepointsAtMost() const {
  const auto count = std::min<size_t>(2 * trial_.moves.size(), timeline_.ops());
  return static_cast<double>(machine_.safepoint) * static_cast<double>(count);
}

Found Search::KeepIfBetter() {
  improved_ = false;
  if (has_plan_ && !IsBetter(trial_)) return Found::kPlan;
  if (!CountPeaks(timeline_, &trial_)) return Found::kNoMemory;
  std::swap(best_, trial_);
  has_plan_ = true;
  improved_ = true;
  return waits_.CopyFrom(trial_waits_) ? Found::kPlan : Found::kNoMemory;
}

// Puts a plan with fewer safepoints in the trial's place, if that is faster.
bool Search::ShareInTrial(double most) {
  if (!shared_.CopyMoves(trial_)) return false;
  if (!ShareSafepoints(timeline_, evaluator_.out_done_at(), evaluator_.in_done_at(), &shared_)) {
    return false;
  }
  // On large steps its waits are worth knowing even if it is slower: recipes expect them.
  const bool is_large = !IsSmall(trial_);
  most = is_large ? Evaluator::kAnyTime : std::min(most, static_cast<double>(trial_.step_time) + 1);
  const Evaluator::Result valued = evaluator_.Run(timeline_, machine_, most, &shared_);
  spent_ += kShareWorkOfMove * shared_.moves.size() + evaluator_.work();
  if (valued != Evaluator::Result::kDone) return valued != Evaluator::Result::kNoMemory;
  if (machine_.host_budget != kNoLimit && !CountPeaks(timeline_, &shared_)) return false;
  const bool is_allowed =
      machine_.host_budget == kNoLimit || shared_.host_peak <= machine_.host_budget;
  if (is_large && !trial_waits_.CopyFrom(evaluator_.waits_out())) return false;
  if (!is_allowed || shared_.step_time >= trial_.step_time) return true;
  std::swap(shared_, trial_);
  return trial_waits_.CopyFrom(evaluator_.waits_out());
}

bool Search::IsBetter(const Plan& plan) const {
  const double same = static_cast<double>(timeline_.ideal()) * kSameTime;
  const double gain = static_cast<double>(best_.step_time - plan.step_time);
  if (gain > same || gain < -same) return gain > 0;
  return plan.bytes_out + plan.bytes_in < best_.bytes_out + best_.bytes_in;
}

}  // namespace tidemark::core::planner
