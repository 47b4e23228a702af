#include "core/planner/parking.h"

#include <algorithm>

namespace tidemark::core::planner {

bool Parking::Init(const Step& step, const Machine& machine) {
  candidates_.Clear();
  all_bytes_ = 0;
  host_budget_ = machine.host_budget;
  chunk_bytes_ = machine.chunk_bytes;
  Array<bool> used;
  if (!used.Resize(step.buffers.size(), false)) return false;
  for (const StepAccess& access : step.accesses) used[access.buffer] = true;
  for (BufferIndex b = 0; b < step.buffers.size(); ++b) {
    const StepBuffer& it = step.buffers[b];
    const bool may_leave = it.persistent && it.movable && it.bytes != 0;
    if (used[b] || !may_leave || it.bytes < machine.min_bytes) continue;
    if (!candidates_.Append({b, it.bytes, 0})) return false;
    all_bytes_ += it.bytes;
  }
  if (empty()) return true;
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.buffer < b.buffer;
  });
  if (!rest_.ops.CopyFrom(step.ops) || !rest_.accesses.CopyFrom(step.accesses) ||
      !rest_.buffers.CopyFrom(step.buffers)) {
    return false;
  }
  for (const Candidate& candidate : candidates_) rest_.buffers[candidate.buffer].bytes = 0;
  ParkAtLeast(all_bytes_);
  return true;
}

void Parking::ParkAtLeast(Bytes needed) {
  parked_bytes_ = 0;
  for (Candidate& it : candidates_) {
    const Bytes lacking = needed - std::min(needed, parked_bytes_);
    const Bytes room = host_budget_ - parked_bytes_;
    it.parked = std::min(RoundUp(lacking, chunk_bytes_), it.bytes);
    if (it.parked > room) it.parked = room - room % chunk_bytes_;
    parked_bytes_ += it.parked;
  }
  is_enough_ = parked_bytes_ >= needed;
}

Machine Parking::Left(const Machine& machine) const {
  Machine left = machine;
  if (left.device_budget != kNoLimit) {
    left.device_budget -= std::min(left.device_budget, kept_bytes());
  }
  if (left.host_budget != kNoLimit) left.host_budget -= parked_bytes_;
  return left;
}

WindowVerdict Parking::Verdict(const Candidate& candidate) const {
  if (candidate.parked == candidate.bytes) return WindowVerdict::kTaken;
  if (candidate.parked != 0) return WindowVerdict::kTakenInPart;
  return is_enough_ ? WindowVerdict::kNotNeeded : WindowVerdict::kHostFull;
}

bool Parking::Complete(Plan* plan) const {
  plan->parked.Clear();
  if (empty()) return true;
  for (const Candidate& candidate : candidates_) {
    if (candidate.parked == 0) continue;
    if (!plan->parked.Append({candidate.buffer, candidate.parked})) return false;
  }
  plan->device_peak += kept_bytes();
  plan->host_peak += parked_bytes_;
  Array<uint8_t> verdicts;  // by buffer, one more than the verdict
  if (!verdicts.Resize(rest_.buffers.size(), 0)) return false;
  for (const Candidate& candidate : candidates_) {
    verdicts[candidate.buffer] = static_cast<uint8_t>(1 + static_cast<uint8_t>(Verdict(candidate)));
  }
  for (WindowDecision& decision : plan->decisions) {
    const uint8_t verdict = verdicts[decision.buffer];
    if (verdict != 0) decision.verdict = static_cast<WindowVerdict>(verdict - 1);
  }
  return true;
}

}  // namespace tidemark::core::planner
