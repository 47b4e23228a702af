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
  op_first_.Clear();
  live_.Clear();
  floor_.Clear();
  if (!first_use_.Resize(buffers() + 1, 0) || !op_first_.Resize(n + 1, 0)) return false;
  if (!live_.Resize(n + 2, 0) || !floor_.Resize(n + 2, 0)) return false;
  for (BufferIndex b = 0; b < buffers(); ++b) {
    const StepBuffer& it = buffer(b);
    live_[it.persistent ? 0 : it.born] += it.bytes;
    live_[it.persistent ? n : it.freed + 1] -= it.bytes;
  }
  SumUp(&live_);
  if (!SumDurations() || !CollectUses()) return false;
  for (BufferIndex b = 0; b < buffers(); ++b) LinkUses(b);
  CountAlive();
  return true;
}

bool Timeline::SumDurations() {
  if (!starts_.Resize(ops() + 1)) return false;
  ideal_ = 0;
  for (OpIndex i = 0; i < ops(); ++i) {
    starts_[i] = static_cast<double>(ideal_);
    ideal_ += step_->ops[i].duration;
  }
  starts_[ops()] = static_cast<double>(ideal_);
  return true;
}

// A transient buffer takes memory before its first access and keeps it after its last: birth and
// death count as uses, so that it can be away in between. A persistent buffer that nobody uses
// (planner/parking.h) counts as used once, where least is alive.
bool Timeline::CollectUses() {
  const uint32_t n = ops();
  const Step& step = *step_;
  Array<uint32_t> first, last;
  if (!first.Resize(buffers(), kNone) || !last.Resize(buffers(), kNone)) return false;
  for (OpIndex i = 0; i < n; ++i) {
    for (uint32_t a = 0; a < step.ops[i].access_count; ++a) {
      const BufferIndex b = step.accesses[step.ops[i].first_access + a].buffer;
      if (first[b] == kNone) first[b] = i;
      last[b] = i;
    }
  }
  const OpIndex quietest = LeastAlive();
  // Once to count, once to place.
  for (const bool counts : {true, false}) {
    const auto add = [this, counts](BufferIndex b, OpIndex op, bool write) {
      if (counts) {
        ++first_use_[b + 1];
        ++op_first_[op + 1];
        return;
      }
      op_uses_[op_first_[op]] = first_use_[b];
      op_list_[op_first_[op]++] = b;
      uses_[first_use_[b]++] = Use{op, write, kNone, kNone};
    };
    for (BufferIndex b = 0; b < buffers(); ++b) {
      const StepBuffer& it = buffer(b);
      if (it.persistent && first[b] == kNone) add(b, quietest, false);
      if (!it.persistent && first[b] != it.born) add(b, it.born, true);
    }
    for (OpIndex i = 0; i < n; ++i) {
      for (uint32_t a = 0; a < step.ops[i].access_count; ++a) {
        const StepAccess& access = step.accesses[step.ops[i].first_access + a];
        add(access.buffer, i, access.write);
      }
    }
    for (BufferIndex b = 0; b < buffers(); ++b) {
      const StepBuffer& it = buffer(b);
      const OpIndex seen = last[b] == kNone ? it.born : last[b];
      if (!it.persistent && seen != it.freed) add(b, it.freed, false);
    }
    if (counts && !StartLists()) return false;
  }
  // Placing moved each start to the end of its list.
  for (size_t b = buffers(); b > 0; --b) first_use_[b] = first_use_[b - 1];
  for (size_t i = n; i > 0; --i) op_first_[i] = op_first_[i - 1];
  first_use_[0] = op_first_[0] = 0;
  return true;
}

bool Timeline::StartLists() {
  for (size_t b = 1; b < first_use_.size(); ++b) first_use_[b] += first_use_[b - 1];
  for (size_t i = 1; i < op_first_.size(); ++i) op_first_[i] += op_first_[i - 1];
  const size_t total = first_use_[buffers()];
  return uses_.Resize(total) && op_list_.Resize(total) && op_uses_.Resize(total);
}

OpIndex Timeline::LeastAlive() const {
  OpIndex least = 0;
  for (OpIndex i = 1; i < ops(); ++i) {
    if (live_[i] < live_[least]) least = i;
  }
  return least;
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

uint32_t Timeline::WindowOf(BufferIndex b, OpIndex release) const {
  const Use *first = &uses_[first_use(b)], *end = &uses_[first_use(b + 1)];
  if (first == end) return kNone;
  const Use* after =
      std::lower_bound(first, end, release, [](const Use& use, OpIndex op) { return use.op < op; });
  const bool wraps = after == first;
  const Use& it = wraps ? *(end - 1) : *(after - 1);
  const uint32_t at = wraps ? release + ops() : release;
  return it.next != kNone && at < it.next ? static_cast<uint32_t>(&it - uses_.begin()) : kNone;
}

void Timeline::CountAlive() {
  const uint32_t n = ops();
  for (BufferIndex b = 0; b < buffers(); ++b) {
    if (!CanMove(b)) continue;
    for (uint32_t i = first_use_[b]; i < first_use_[b + 1]; ++i) {
      const Use& use = uses_[i];
      if (IsOpen(use)) AddInside(&floor_, n, use.op, use.next, buffer(b).bytes);
    }
  }
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
