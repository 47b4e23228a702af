#include "core/planner/prices/price_draft.h"

#include <algorithm>

#include "core/planner/prices/fluid_prices.h"
#include "core/planner/prices/mend_draft.h"
#include "core/planner/prices/round_mix.h"

namespace tidemark::core::planner {
namespace {

// In units of kPriceWork, in each round: a stretch of a gap is 1.
constexpr uint64_t kWorkOfGap = 10;
constexpr uint64_t kWorkOfStretch = 24;  // of the step: its prices
constexpr uint64_t kWorkOfBuild = 32;    // in each fluid step, for an operation or use of the step
constexpr uint32_t kPriceSteps = 60;     // near enough for the mix to start with
// A mix starts from that of half as many stretches, and this from one of half as many again: from
// there it takes fewer rounds, and those of the others are cheap.
constexpr uint32_t kLevels = 2;
constexpr size_t kLeastSize = 1000;  // stretches in gaps: it starts from prices if it has fewer
constexpr uint64_t kRoundsOfCoarsest = 100;
constexpr uint64_t kRoundsOfCoarse = 40;
constexpr uint64_t kRounds = 250;
constexpr uint64_t kRoundsOfFew = 450;  // where stretches are to be few, as rounds are cheap
constexpr uint64_t kMoreRounds = 200;   // for the second draft, if there is no work for a finer one
constexpr uint64_t kFewestRounds = 50;  // with less it comes to nothing
constexpr size_t kMostSize = 8'300;     // of the first draft
constexpr uint32_t kLongestStretch = 40;  // operations, in the mean: longer ones blur too much
constexpr uint32_t kFewestStretches = 8;  // to start from
// By so much do gaps together get shorter at the most, beside the length of stretches: some close,
// and chains become alike.
constexpr double kLeastLeft = 0.4;
constexpr uint32_t kTries = 7;    // of numbers of stretches
constexpr double kCloser = 0.98;  // what is aimed at, of kMostSize
// Of the budget this part is spare: neither prices nor rounding are exact, and to mend is dearer.
constexpr Bytes kSparePart = 256;

// Of a fluid step with a stretch for each operation, at most.
size_t SizeOf(const Timeline& timeline) {
  size_t size = 0;
  for (BufferIndex b = 0; b < timeline.buffers(); ++b) {
    if (!timeline.CanMove(b)) continue;
    for (uint32_t u = timeline.first_use(b); u < timeline.first_use(b + 1); ++u) {
      const Use& use = timeline.use(u);
      if (timeline.IsOpen(use)) size += use.next - use.op;
    }
  }
  return size;
}

uint64_t WorkOf(const FluidStep& step) {
  return step.size + kWorkOfGap * step.gaps_of_classes + kWorkOfStretch * step.starts.size();
}

}  // namespace

PriceDrafts::PriceDrafts(const Timeline& timeline, const Machine& machine, double stall,
                         uint32_t stretches, uint64_t* work)
    : timeline_(timeline),
      machine_(machine),
      stall_(stall),
      is_finest_(stretches == kFinest),
      work_(*work),
      count_(is_finest_ ? timeline.ops() : stretches) {}

DraftResult PriceDrafts::Next(Draft* draft) {
  draft->aways.Clear();
  const bool is_first = drafts_++ == 0;
  if (drafts_ > (is_finest_ ? 2 : 1)) return DraftResult::kCannot;
  const DraftResult found = is_first ? First() : Second();
  if (found != DraftResult::kDone) return found;
  return finer_mix_ ? Write(finer_step_, &*finer_mix_, draft) : Write(step_, &*mix_, draft);
}

DraftResult PriceDrafts::First() {
  const DraftResult chosen = ChooseStretches();
  if (chosen != DraftResult::kDone) return chosen;
  mix_.emplace(step_, machine_);
  const bool from_prices = !is_finest_ || step_.size < kLeastSize;
  return Solve(step_, count_, from_prices ? 0 : kLevels, is_finest_ ? kRounds : kRoundsOfFew,
               &*mix_);
}

// In twice as many stretches, or after more rounds.
DraftResult PriceDrafts::Second() {
  if (count_ < timeline_.ops()) {
    const DraftResult built = Build(std::min(2 * count_, timeline_.ops()), &finer_step_);
    if (built == DraftResult::kNoMemory) return built;
    if (built == DraftResult::kDone && work_ >= kFewestRounds * WorkOf(finer_step_)) {
      finer_mix_.emplace(finer_step_, machine_);
      if (!finer_mix_->Start(*mix_, stall_)) return DraftResult::kNoMemory;
      Improve(finer_step_, kRounds, &*finer_mix_);
      return DraftResult::kDone;
    }
  }
  Improve(step_, kMoreRounds, &*mix_);
  return DraftResult::kDone;
}

// kCannot: there is no time for it, or it has no gap.
DraftResult PriceDrafts::Build(uint32_t count, FluidStep* step) {
  const uint64_t work = kWorkOfBuild * (timeline_.ops() + timeline_.uses());
  if (work_ < work) return DraftResult::kCannot;
  work_ -= work;
  const Bytes spare = machine_.device_budget / kSparePart;
  if (!step->Build(timeline_, machine_, count, spare)) return DraftResult::kNoMemory;
  return step->gaps.empty() ? DraftResult::kCannot : DraftResult::kDone;
}

// As many as keep step_ small enough. A mix can start from another only if its stretches nest: half
// as many do, and any do in one for each operation.
DraftResult PriceDrafts::ChooseStretches() {
  // It grows nearly as the square of them.
  const auto fewer = [this](double size) {
    const double most = kCloser * static_cast<double>(kMostSize) * count_ * count_;
    uint32_t count = count_;
    while (size * count * count > most) --count;
    return count - count % (1U << kLevels);
  };
  const double least = kLeastLeft * static_cast<double>(SizeOf(timeline_));
  if (is_finest_) {
    if (least > static_cast<double>(kMostSize)) count_ = fewer(least);
  } else if (least * count_ > static_cast<double>(kMostSize) * timeline_.ops()) {
    return DraftResult::kCannot;
  }
  for (uint32_t tries = 0; tries < kTries && count_ > 0; ++tries) {
    if (uint64_t{count_} * kLongestStretch < timeline_.ops() && is_finest_) break;
    const DraftResult built = Build(count_, &step_);
    if (built != DraftResult::kDone) return built;
    if (step_.size <= kMostSize) return DraftResult::kDone;
    if (!is_finest_) break;
    count_ = fewer(static_cast<double>(step_.size));
  }
  return DraftResult::kCannot;
}

DraftResult PriceDrafts::Solve(const FluidStep& step, uint32_t count, uint32_t levels,
                               uint64_t rounds, FluidMix* mix) {
  const uint64_t work = WorkOf(step);
  const bool from_prices = levels == 0 || count < kFewestStretches;
  if (work_ < (kFewestRounds + (from_prices ? kPriceSteps : 0)) * work) return DraftResult::kCannot;
  if (from_prices) {
    work_ -= kPriceSteps * work;
    FluidPrices prices(step, machine_);
    if (!prices.Run(kPriceSteps, stall_)) return DraftResult::kNoMemory;
    if (!mix->Start(prices, stall_)) return DraftResult::kNoMemory;
  } else {
    const DraftResult started = SolveCoarser(step, count, levels, mix);
    if (started != DraftResult::kDone) return started;
  }
  Improve(step, rounds, mix);
  return DraftResult::kDone;
}

DraftResult PriceDrafts::SolveCoarser(const FluidStep& step, uint32_t count, uint32_t levels,
                                      FluidMix* mix) {
  --levels;
  const uint32_t half = count >> 1 >> levels << levels;
  FluidStep coarse;
  const DraftResult built = Build(half, &coarse);
  if (built == DraftResult::kNoMemory) return built;
  if (built == DraftResult::kCannot) return Solve(step, count, 0, 0, mix);
  FluidMix coarse_mix(coarse, machine_);
  const uint64_t rounds = levels == 0 ? kRoundsOfCoarsest : kRoundsOfCoarse;
  const DraftResult solved = Solve(coarse, half, levels, rounds, &coarse_mix);
  if (solved != DraftResult::kDone) return solved;
  return mix->Start(coarse_mix, stall_) ? DraftResult::kDone : DraftResult::kNoMemory;
}

void PriceDrafts::Improve(const FluidStep& step, uint64_t rounds, FluidMix* mix) {
  const uint64_t before = mix->work();
  mix->Improve(before + std::min(work_, rounds * WorkOf(step)));
  work_ -= std::min(work_, mix->work() - before);
}

DraftResult PriceDrafts::Write(const FluidStep& step, FluidMix* mix, Draft* draft) const {
  const bool done = mix->FindShares() &&
                    RoundMix(timeline_, machine_.chunk_bytes, step, *mix, draft) &&
                    MendDraft(timeline_, machine_, draft);
  return done ? DraftResult::kDone : DraftResult::kNoMemory;
}

}  // namespace tidemark::core::planner
