#include "core/planner/timeline.h"

#include <algorithm>

namespace tidemark::core::planner {
namespace {

// Adds `bytes` to differences over the operations strictly between `from` and `to` (to may count on
// through the iteration's end). Wraps around zero like all sums of differences.
void AddInside(Array<Bytes>* diff, uint32_t ops, uint32_t from, uint32_t to, Bytes bytes) {
  (*diff)[from + 1] += bytes;
  if (to < ops) {
    (*diff)[to] -= bytes;
    return;
  }
  (*diff)[ops] -= bytes;
  (*diff)[0] += bytes;
  (*diff)[to - ops] -= bytes;
}

void SumUp(Array<Bytes>* diff) {
  for (size_t i = 1; i < diff->size(); ++i) (*diff)[i] += (*diff)[i - 1];
}

}  // namespace

bool Timeline::Build(const Step& step, const Machine& machine) {
  step_ = &step;
  min_bytes_ = machine.min_bytes;
  const uint32_t n = ops();
  first_use_.Clear();
  if (!first_use_.Resize(buffers() + 1, 0) || !uses_.Resize(step.accesses.size())) return false;
  live_.Clear();
  floor_.Clear();
  if (!live_.Resize(n + 2, 0) || !floor_.Resize(n + 2, 0)) return false;
  ideal_ = 0;
  size_t total = 0;
  for (const StepOp& op : step.ops) {
    ideal_ += op.duration;
    total += op.access_count;
    for (uint32_t a = 0; a < op.access_count; ++a) {
      ++first_use_[step.accesses[op.first_access + a].buffer];
    }
  }
  if (!uses_.Resize(total)) return false;
  uint32_t end = 0;
  for (BufferIndex b = 0; b <= buffers(); ++b) {
    end += first_use_[b];
    first_use_[b] = end;  // for now the end of its uses; filled from the back
  }
  for (OpIndex i = n; i-- > 0;) {
    const StepOp& op = step.ops[i];
    for (uint32_t a = 0; a < op.access_count; ++a) {
      const StepAccess& access = step.accesses[op.first_access + a];
      uses_[--first_use_[access.buffer]] = Use{i, access.write, kNone, kNone};
    }
  }
  for (BufferIndex b = 0; b < buffers(); ++b) LinkUses(b);
  CountAlive();
  return true;
}

void Timeline::LinkUses(BufferIndex b) {
  const uint32_t first = first_use_[b], end = first_use_[b + 1], n = ops();
  if (first == end) return;
  for (uint32_t i = first; i + 1 < end; ++i) uses_[i].next = uses_[i + 1].op;
  if (buffer(b).persistent) uses_[end - 1].next = uses_[first].op + n;
  uint32_t last_write = kNone;  // an index of uses_
  for (uint32_t i = first; i < end; ++i) {
    if (uses_[i].write) last_write = i;
    if (last_write != kNone) uses_[i].since_write = uses_[i].op - uses_[last_write].op;
  }
  if (!buffer(b).persistent || last_write == kNone) {
    // A transient buffer holds nothing worth a copy before its first use, which counts as its
    // write.
    for (uint32_t i = first; i < end && !buffer(b).persistent; ++i) {
      if (uses_[i].since_write == kNone) uses_[i].since_write = uses_[i].op - uses_[first].op;
    }
    return;
  }
  for (uint32_t i = first; i < end && uses_[i].since_write == kNone; ++i) {
    uses_[i].since_write = uses_[i].op + n - uses_[last_write].op;
  }
}

void Timeline::CountAlive() {
  const uint32_t n = ops();
  for (BufferIndex b = 0; b < buffers(); ++b) {
    const StepBuffer& it = buffer(b);
    live_[it.persistent ? 0 : it.born] += it.bytes;
    live_[it.persistent ? n : it.freed + 1] -= it.bytes;
    if (!CanMove(b)) continue;
    for (uint32_t i = first_use_[b]; i < first_use_[b + 1]; ++i) {
      const Use& use = uses_[i];
      if (IsOpen(use)) AddInside(&floor_, n, use.op, use.next, it.bytes);
    }
  }
  SumUp(&live_);
  SumUp(&floor_);  // so far what can be away
  peak_ = 0;
  largest_floor_ = 0;
  for (uint32_t i = 0; i < n; ++i) {
    floor_[i] = live_[i] - floor_[i];
    peak_ = std::max(peak_, live_[i]);
    largest_floor_ = std::max(largest_floor_, floor_[i]);
  }
}

}  // namespace tidemark::core::planner
