#include <algorithm>

#include "core/planner/evaluate.h"

namespace tidemark::core::planner {
namespace {

// Adds over the slots from `from` to before `to`, cyclically; from == to: none.
void AddSlots(Array<Bytes>* diff, uint32_t ops, uint32_t from, uint32_t to, Bytes bytes) {
  if (from == to) return;
  (*diff)[from] += bytes;
  (*diff)[to] -= bytes;
  if (to < from) {
    (*diff)[0] += bytes;
    (*diff)[ops] -= bytes;
  }
}

bool IsSamePart(const Move& a, const Move& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.bytes == b.bytes;
}

// Moves of one part that share one copy on the host, by their indices in `order` (sorted by part
// and release): the end of the chain that `start` opens.
size_t ChainEnd(const Plan& plan, const Array<MoveIndex>& order, size_t first, size_t end,
                size_t start) {
  size_t at = start;
  for (size_t steps = first; steps < end && plan.moves[order[at]].keeps_copy; ++steps) {
    at = at + 1 == end ? first : at + 1;
  }
  return at;
}

}  // namespace

bool DeviceBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* device) {
  const uint32_t n = timeline.ops();
  Array<Bytes> away;
  if (!away.Resize(n + 1, 0) || !device->Resize(n)) return false;
  for (const Move& move : plan.moves) AddSlots(&away, n, move.release, move.reserve, move.bytes);
  Bytes sum = 0;
  for (uint32_t i = 0; i < n; ++i) (*device)[i] = timeline.live(i) - (sum += away[i]);
  return true;
}

bool HostBytes(const Timeline& timeline, const Plan& plan, Array<Bytes>* host) {
  const uint32_t n = timeline.ops();
  Array<MoveIndex> order;
  host->Clear();
  if (!host->Resize(n + 1, 0) || !order.Resize(plan.moves.size())) return false;
  for (MoveIndex m = 0; m < order.size(); ++m) order[m] = m;
  const Array<Move>& moves = plan.moves;
  std::sort(order.begin(), order.end(), [&moves](MoveIndex a, MoveIndex b) {
    const Move &x = moves[a], &y = moves[b];
    if (x.buffer != y.buffer) return x.buffer < y.buffer;
    if (x.offset != y.offset) return x.offset < y.offset;
    if (x.bytes != y.bytes) return x.bytes < y.bytes;
    return x.release != y.release ? x.release < y.release : a < b;
  });
  for (size_t first = 0, end = 0; first < order.size(); first = end) {
    bool has_copy_out = false;
    for (end = first; end < order.size() && IsSamePart(moves[order[first]], moves[order[end]]);) {
      has_copy_out |= !moves[order[end++]].clean;
    }
    if (!has_copy_out) (*host)[0] += moves[order[first]].bytes;  // for ever
    for (size_t k = first; k < end; ++k) {
      const Move& move = moves[order[k]];
      if (move.clean) continue;
      const Move& last = moves[order[ChainEnd(plan, order, first, end, k)]];
      const uint32_t from = move.after + 1 == n ? 0 : move.after + 1;
      const uint32_t to = last.ready + 1 == n ? 0 : last.ready + 1;
      if (from == to) {
        (*host)[0] += move.bytes;  // around the whole iteration
      } else {
        AddSlots(host, n, from, to, move.bytes);
      }
    }
  }
  for (uint32_t i = 1; i < n; ++i) (*host)[i] += (*host)[i - 1];
  return host->Resize(n);
}

bool CountPeaks(const Timeline& timeline, Plan* plan) {
  plan->device_peak = plan->host_peak = 0;
  Array<Bytes> bytes;
  if (!DeviceBytes(timeline, *plan, &bytes)) return false;
  for (Bytes at : bytes) plan->device_peak = std::max(plan->device_peak, at);
  if (!HostBytes(timeline, *plan, &bytes)) return false;
  for (Bytes at : bytes) plan->host_peak = std::max(plan->host_peak, at);
  return true;
}

}  // namespace tidemark::core::planner
