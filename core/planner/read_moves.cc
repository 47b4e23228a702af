#include <algorithm>

#include "core/planner/draft.h"

namespace tidemark::core::planner {
namespace {

// False: the move does not fit the step any more.
bool ReadMove(const Timeline& timeline, const Machine& machine, const Move& move, Away* away) {
  const uint32_t n = timeline.ops();
  if (move.buffer >= timeline.buffers() || !timeline.CanMove(move.buffer)) return false;
  if (move.release >= n || move.reserve >= n || move.ready >= n) return false;
  const Bytes whole = timeline.buffer(move.buffer).bytes;
  if (move.offset >= whole || move.offset % machine.chunk_bytes != 0) return false;
  away->buffer = move.buffer;
  away->offset = move.offset;
  away->bytes = std::min(RoundUp(move.bytes, machine.chunk_bytes), whole - move.offset);
  away->use = timeline.WindowOf(move.buffer, move.release);
  if (away->use == kNone) return false;
  const Use& use = timeline.use(away->use);
  away->release = move.release > use.op ? move.release : move.release + n;
  away->reserve = move.reserve > use.op ? move.reserve : move.reserve + n;
  away->ready = move.ready > use.op ? move.ready : move.ready + n;
  return away->release < away->reserve && away->reserve <= away->ready && away->ready <= use.next;
}

// Whether copies in are queued by `reserve`, then by the wait until `ready`.
bool IsUsualOrder(const Timeline& timeline, const Plan& plan) {
  const uint32_t n = timeline.ops();
  const Move* before = nullptr;
  const auto wait = [n](const Move& m) { return (m.ready + n - m.reserve) % n; };
  for (const MoveIndex k : plan.in_queue) {
    if (k >= plan.moves.size()) continue;
    const Move& move = plan.moves[k];
    if (before != nullptr && (before->reserve > move.reserve ||
                              (before->reserve == move.reserve && wait(*before) > wait(move)))) {
      return false;
    }
    before = &move;
  }
  return true;
}

bool Overlap(const Away& a, const Away& b) {
  return a.use == b.use && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

bool ReadMoves(const Timeline& timeline, const Machine& machine, const Plan& plan, Draft* draft) {
  draft->aways.Clear();
  // Where a move stands in the queue of copies out, and the first boundary at which nothing ahead
  // of it, nor itself, has to wait for its content.
  Array<uint32_t> place, slot;
  if (!place.Resize(plan.moves.size(), kNone) || !slot.Resize(plan.moves.size(), 0)) return false;
  uint32_t newest = 0;
  for (uint32_t k = 0; k < plan.out_queue.size(); ++k) {
    const MoveIndex m = plan.out_queue[k];
    if (m >= plan.moves.size()) continue;
    newest = std::max(newest, plan.moves[m].after + 1);
    place[m] = k;
    slot[m] = newest;
  }
  // The same of copies in, where their order is another than WriteMoves gives them by itself.
  Array<uint32_t> in_place, in_slot;
  if (!in_place.Resize(plan.moves.size(), 0) || !in_slot.Resize(plan.moves.size(), 0)) return false;
  const bool is_usual = IsUsualOrder(timeline, plan);
  newest = 0;
  for (uint32_t k = 0; k < plan.in_queue.size() && !is_usual; ++k) {
    const MoveIndex m = plan.in_queue[k];
    if (m >= plan.moves.size()) continue;
    newest = std::max(newest, plan.moves[m].reserve);
    in_place[m] = k;
    in_slot[m] = newest - plan.moves[m].reserve;
  }
  const bool is_limited = machine.host_budget < timeline.peak();
  const bool is_lossy =
      machine.in_rate_duplex < machine.in_rate || machine.out_rate_duplex < machine.out_rate;
  for (MoveIndex m = 0; m < plan.moves.size(); ++m) {
    Away away;
    if (!ReadMove(timeline, machine, plan.moves[m], &away)) continue;
    const Move& move = plan.moves[m];
    away.issue = static_cast<int32_t>(away.release);
    if (!move.clean && move.after < timeline.ops()) {
      const uint32_t n = timeline.ops();
      const uint32_t lead = (move.release + n - move.after - 1) % n;
      away.issue += static_cast<int32_t>(slot[m] - move.after - 1) - static_cast<int32_t>(lead);
      away.issue = std::min(away.issue, static_cast<int32_t>(away.release));
    }
    away.order = place[m];
    away.fetch = away.reserve + in_slot[m];
    away.fetch_order = in_place[m];
    away.copies_late = is_limited || is_lossy;
    away.copies_again = is_limited && !move.clean;
    if (!draft->aways.Append(away)) return false;
  }
  Array<Away>& aways = draft->aways;
  std::sort(aways.begin(), aways.end(), ByWindow);
  size_t kept = 0;
  for (size_t k = 0; k < aways.size(); ++k) {
    if (kept == 0 || !Overlap(aways[kept - 1], aways[k])) aways[kept++] = aways[k];
  }
  return aways.Resize(kept);
}

}  // namespace tidemark::core::planner
