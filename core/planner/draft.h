// A plan before it is written down: which parts of which windows are away and between which
// boundaries. Plan has what follows from it as well: clean copies, queues, predictions. Threads:
// none of its own.

#ifndef TIDEMARK_CORE_PLANNER_DRAFT_H_
#define TIDEMARK_CORE_PLANNER_DRAFT_H_

#include <cstdint>

#include "core/array.h"
#include "core/plan.h"
#include "core/planner/dice.h"
#include "core/planner/timeline.h"
#include "core/step.h"

namespace tidemark::core::planner {

struct Away {
  BufferIndex buffer = 0;
  uint32_t use = 0;  // the window: the one after this use of the timeline
  Bytes offset = 0;
  Bytes bytes = 0;
  // Boundaries, counted on from the iteration of the window's first use: use.op < release < reserve
  // <= use.next.
  uint32_t release = 0;
  uint32_t reserve = 0;
  // Where the copy out stands in its queue: by boundary (counted like release, and at most release;
  // may be before the window), then by order.
  int32_t issue = 0;
  uint32_t order = 0;
  // Counted like reserve: reserve <= ready <= use.next.
  uint32_t ready = 0;
  // Counted likewise, where it is known: the boundary at which the copy in is done; 0: it is not.
  uint32_t back = 0;
  // Where the copy in stands in its queue: by boundary (counted like reserve; its own reserve if
  // that is later), then by order, then by `ready`.
  uint32_t fetch = 0;
  uint32_t fetch_order = 0;
  // With a limited host: the copy out starts at `issue` even if its content is there before; a copy
  // that is still valid is made again, so that the host need not keep it.
  bool copies_late = false;
  bool copies_again = false;
};

// Parts of one window stand together, by offset; what repeats, earliest release first.
inline bool ByWindow(const Away& a, const Away& b) {
  if (a.use != b.use) return a.use < b.use;
  return a.offset != b.offset ? a.offset < b.offset : a.release < b.release;
}

// Windows of one part stand together where parts are sorted by buffer, offset, size and window.
inline bool IsSamePart(const Away& a, const Away& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.bytes == b.bytes;
}
inline size_t PartEnd(const Array<Away>& aways, size_t first) {
  size_t end = first + 1;
  while (end < aways.size() && IsSamePart(aways[first], aways[end])) ++end;
  return end;
}

struct Draft {
  Array<Away> aways;
  // Neighbouring parts that leave and return together stay apart: they did so in the plan that this
  // was read from, where their copies may stand apart in the queues.
  bool keeps_parts = false;
  // What CoverDemand and WriteMoves did for it, in units of Search::kMostWork.
  uint64_t work = 0;
};

// Per operation, the bytes that are away. False: no host memory.
[[nodiscard]] inline bool SumAways(uint32_t ops, const Array<Away>& aways, Array<Bytes>* away) {
  away->Clear();
  if (!away->Resize(ops, 0)) return false;
  for (const Away& a : aways) {  // first as differences
    const uint32_t from = a.release % ops, to = a.reserve % ops;
    (*away)[from] += a.bytes;
    (*away)[to] -= a.bytes;
    if (to < from) (*away)[0] += a.bytes;
  }
  for (uint32_t i = 1; i < ops; ++i) (*away)[i] += (*away)[i - 1];
  return true;
}

enum class DraftResult : uint8_t { kDone, kCannot, kNoMemory };

// The moves of a plan that still fit the step. False: no host memory.
[[nodiscard]] bool ReadMoves(const Timeline& timeline, const Machine& machine, const Plan& plan,
                             Draft* draft);

// What CoverDemand takes instead of its own rule.
struct CoverChoice {
  Dice* dice = nullptr;    // candidates in random order
  uint32_t stays = kNone;  // index of the part that is left as it is, as far as others will do
};

// Makes what is away cover what the budget demands at each operation, in windows farthest next use
// first, by longer absence or by new parts. kCannot: an operation's floor is above the budget.
DraftResult CoverDemand(const Timeline& timeline, const Machine& machine, Draft* draft,
                        const CoverChoice& choice = {});

// Writes moves and queues. Copies that are still valid are not made again, as long as the host
// budget allows it. kCannot: the host budget does not hold the copies.
DraftResult WriteMoves(const Timeline& timeline, const Machine& machine, Draft* draft, Plan* plan);

}  // namespace tidemark::core::planner

#endif  // TIDEMARK_CORE_PLANNER_DRAFT_H_
