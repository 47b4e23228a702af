#include <algorithm>

#include "core/planner/search.h"

namespace tidemark::core::planner {
namespace {

constexpr uint32_t kMostTrials = 600;
constexpr uint32_t kPatience = 60;  // trials in a row without a gain
constexpr uint32_t kPolishTrials = 4000;
constexpr uint64_t kPolishWork = 60'000;  // operations and moves walked through in all of them
constexpr uint64_t kWork = 60'000;  // operations, uses and pieces walked through in all trials

// A fixed sequence of numbers that look random (SplitMix64).
class Dice {
 public:
  uint32_t Below(uint32_t sides) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<uint32_t>((z ^ (z >> 31)) % sides);
  }

 private:
  uint64_t state_ = 0;
};

int32_t DrawShift(Dice* dice, uint32_t ops) {
  const auto range = static_cast<int32_t>(ops);
  switch (dice->Below(4)) {
    case 0:
      return 0;
    case 1:
      return -4 * range;  // stays if anything else can leave
    case 2:
      return 4 * range;
    default:
      return static_cast<int32_t>(dice->Below(ops + 1)) - range / 2;
  }
}

void DrawOptions(Dice* dice, SweepOptions* options) {
  constexpr double kSpares[] = {0, 0.5, 0.9, 2};
  if (dice->Below(6) == 0) options->spares = kSpares[dice->Below(4)];
  constexpr double kSpeeds[] = {1, 1, 0.7, 0.4};
  if (dice->Below(6) == 0) options->out_speed = kSpeeds[dice->Below(4)];
  if (dice->Below(6) == 0) options->in_speed = kSpeeds[dice->Below(4)];
  if (dice->Below(6) == 0) options->evicts_to_prefetch = !options->evicts_to_prefetch;
  if (dice->Below(6) == 0) options->spares_yield = !options->spares_yield;
}

// For what goes round; `most` of it can stay.
void DrawRound(double most, Dice* dice, SweepOptions* options) {
  constexpr double kAhead[] = {0, 0.5, 1, 2};
  if (dice->Below(4) == 0) options->stays = most * 0.125 * dice->Below(9);
  if (dice->Below(4) == 0) options->out_ahead = kAhead[dice->Below(4)];
  if (dice->Below(8) == 0) options->in_ahead = kAhead[dice->Below(4)];
}

// A part of the window, all of the buffer or some chunks, where none is yet; away for as long as it
// can be. False: no host memory.
[[nodiscard]] bool AddPart(const Timeline& timeline, Bytes chunk, const OpenWindow& window,
                           Dice* dice, Draft* draft) {
  const Use& use = timeline.use(window.use);
  const Bytes whole = timeline.buffer(window.buffer).bytes;
  const auto chunks = static_cast<uint32_t>((whole + chunk - 1) / chunk);
  Away part;
  part.buffer = window.buffer;
  part.use = window.use;
  part.offset = dice->Below(2) == 0 ? 0 : chunk * dice->Below(chunks);
  part.bytes = std::min(whole - part.offset, chunk * (1 + dice->Below(chunks)));
  part.release = use.op + 1;
  part.reserve = use.next;
  part.issue = static_cast<int32_t>(part.release);
  for (const Away& a : draft->aways) {
    const bool overlaps = a.use == part.use && a.offset < part.offset + part.bytes &&
                          part.offset < a.offset + a.bytes;
    if (overlaps) return true;
  }
  return draft->aways.Append(part);
}

// Changes when a part leaves or returns, or cuts it in two; what that breaks, CoverDemand repairs.
// False: no host memory.
[[nodiscard]] bool ChangePart(const Timeline& timeline, Bytes chunk, Dice* dice, Draft* draft) {
  const auto parts = static_cast<uint32_t>(draft->aways.size());
  Away& a = draft->aways[dice->Below(parts)];
  const Use& use = timeline.use(a.use);
  switch (dice->Below(6)) {
    case 0:
    case 1:
      a.reserve = a.release + 1 + dice->Below(use.next - a.release);
      return true;
    case 2:
      a.release = use.op + 1 + dice->Below(a.reserve - use.op - 1);
      return true;
    case 3:
      a.order = draft->aways[dice->Below(parts)].order;
      a.issue = std::min(a.issue, static_cast<int32_t>(use.op + 1));
      return true;
    case 4:  // stays
      a = draft->aways[parts - 1];
      return draft->aways.Resize(parts - 1);
    default:
      if (a.bytes <= chunk) return true;
      Away rest = a;
      a.bytes = chunk * (1 + dice->Below(static_cast<uint32_t>((a.bytes - 1) / chunk)));
      rest.offset += a.bytes;
      rest.bytes -= a.bytes;
      return draft->aways.Append(rest);
  }
}

}  // namespace

Found Search::Polish() {
  if (!has_plan_ || IsDone() || best_.moves.empty()) return Found::kNothing;
  if (!ListOpenWindows()) return Found::kNoMemory;
  Draft draft;
  if (!ReadMoves(timeline_, machine_, best_, &draft)) return Found::kNoMemory;
  const uint64_t work = timeline_.ops() + best_.moves.size();
  const auto trials = static_cast<uint32_t>(std::min<uint64_t>(kPolishTrials, kPolishWork / work));
  Dice dice;
  for (uint32_t t = 0; t < trials && !draft.aways.empty() && !IsDone(); ++t) {
    if (!draft_.aways.CopyFrom(draft.aways)) return Found::kNoMemory;
    for (uint32_t k = 1 + dice.Below(3); k-- > 0;) {
      const bool adds = draft_.aways.empty() || dice.Below(4) == 0;
      const OpenWindow& window = windows_[dice.Below(static_cast<uint32_t>(windows_.size()))];
      if (adds ? !AddPart(timeline_, machine_.chunk_bytes, window, &dice, &draft_)
               : !ChangePart(timeline_, machine_.chunk_bytes, &dice, &draft_)) {
        return Found::kNoMemory;
      }
    }
    trial_.recipe = best_.recipe;
    if (TryDraft() == Found::kNoMemory) return Found::kNoMemory;
    if (improved_ && !ReadMoves(timeline_, machine_, best_, &draft)) return Found::kNoMemory;
  }
  return Found::kPlan;
}

bool Search::ListOpenWindows() {
  windows_.Clear();
  for (BufferIndex b = 0; b < timeline_.buffers(); ++b) {
    if (!timeline_.CanMove(b)) continue;
    for (uint32_t u = timeline_.first_use(b); u < timeline_.first_use(b + 1); ++u) {
      if (timeline_.IsOpen(timeline_.use(u)) && !windows_.Append({u, b})) return false;
    }
  }
  shifts_.Clear();
  best_shifts_.Clear();
  return shifts_.Resize(timeline_.uses(), 0) && best_shifts_.Resize(timeline_.uses(), 0);
}

Found Search::Improve() {
  if (!has_plan_) return Found::kNothing;
  if (!ListOpenWindows()) return Found::kNoMemory;
  if (windows_.empty()) return Found::kPlan;
  const uint64_t work = timeline_.ops() + timeline_.uses() + best_pieces_;
  const auto trials = static_cast<uint32_t>(std::min<uint64_t>(kMostTrials, kWork / work));
  Dice dice, round_dice;
  (void)round_dice.Below(2);  // out of step with the other
  const bool goes_round = GoesRound();
  uint32_t gained = 0;
  for (uint32_t t = 0; t < trials && t - gained < kPatience && !IsDone(); ++t) {
    if (!shifts_.CopyFrom(best_shifts_)) return Found::kNoMemory;
    SweepOptions options = best_options_;
    DrawOptions(&dice, &options);
    if (goes_round) DrawRound(PartThatStays(1.5), &round_dice, &options);
    for (uint32_t k = 1 + dice.Below(3); k-- > 0;) {
      const OpenWindow& window = windows_[dice.Below(static_cast<uint32_t>(windows_.size()))];
      shifts_[window.use] = DrawShift(&dice, timeline_.ops());
    }
    options.shifts = &shifts_;
    if (TrySweep(options) == Found::kNoMemory) return Found::kNoMemory;
    if (!improved_) continue;
    gained = t;
    if (!best_shifts_.CopyFrom(shifts_)) return Found::kNoMemory;
  }
  return Found::kPlan;
}

}  // namespace tidemark::core::planner
