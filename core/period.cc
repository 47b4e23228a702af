// Implementation of core/period.h. Threads: as the header says.

#include "core/period.h"

#include "core/rolling_hash.h"

namespace tidemark::core {

bool Period::Init() { return signs_.Resize(kSigns) && contexts_.Resize(kContexts); }

void Period::Add(uint64_t sign) {
  bool believed = Follow(sign);
  const bool full = count_ >= kContextLength;
  const uint64_t leaves = full ? signs_[(count_ - kContextLength + 1) % kSigns] : 0;
  context_ = Roll<kContextLength>(context_, sign, leaves);
  signs_[++count_ % kSigns] = sign;
  uint64_t& last = contexts_[context_ * kRoll >> 32 & (kContexts - 1)];
  if (last != 0 && count_ - last < kSigns / 2) {
    believed |= Consider(static_cast<uint32_t>(count_ - last));
  }
  last = count_;
  if (believed || length_ != 0) Choose();
}

// Every candidate's prediction of the sign to come is checked. Whether one of them is believed.
bool Period::Follow(uint64_t sign) {
  bool believed = false;
  for (Candidate& candidate : candidates_) {
    if (candidate.period == 0) continue;
    if (count_ >= candidate.period && signs_[(count_ + 1 - candidate.period) % kSigns] == sign) {
      if (candidate.run < kSigns) ++candidate.run;
      believed = believed || candidate.run >= candidate.needed;
      continue;
    }
    const uint32_t most = 2 * candidate.period;
    if (candidate.run >= candidate.needed) {
      candidate.needed = candidate.run < most ? candidate.run + 1 : most;
    }
    candidate.run = 0;
  }
  return believed;
}

// A new candidate takes the place of the one that is furthest from being believed. Whether there is
// one that is believed at once.
bool Period::Consider(uint32_t period) {
  if (period < kShortest) return false;
  Candidate* weakest = &candidates_[0];
  for (Candidate& candidate : candidates_) {
    if (candidate.period == period) return false;
    if (candidate.period == 0) {
      weakest = &candidate;
      break;
    }
    if (candidate.run < weakest->run) weakest = &candidate;
  }
  // One that never matched for long may still be the iteration, but not while another is followed.
  if (weakest->period != 0 && weakest->run >= kContextLength) return false;
  *weakest = {period, kContextLength, period};
  return weakest->run >= weakest->needed;
}

// The shortest of those that have held for about as long as any: twice an iteration is one as well,
// and a layer repeats only until its pass ends.
void Period::Choose() {
  uint32_t longest = 0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.period != 0 && candidate.run > longest) longest = candidate.run;
  }
  length_ = 0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.period == 0 || candidate.run < candidate.needed) continue;
    if (candidate.run < longest / 2) continue;
    if (length_ == 0 || candidate.period < length_) length_ = candidate.period;
  }
}

}  // namespace tidemark::core
