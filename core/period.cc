// Implementation of core/period.h. Threads: as the header says.

#include "core/period.h"

namespace tidemark::core {

bool Period::Init() { return signs_.Resize(kSigns) && contexts_.Resize(kContexts); }

void Period::Add(uint64_t sign) {
  signs_[++count_ % kSigns] = sign;
  Follow(sign);
  uint64_t context = 1;
  for (uint32_t i = 0; i < kContextLength && i < count_; ++i) {
    context = Mix(context, signs_[(count_ - i) % kSigns]);
  }
  uint64_t& last = contexts_[context >> 32 & (kContexts - 1)];
  if (last != 0 && count_ - last < kSigns / 2) Consider(static_cast<uint32_t>(count_ - last));
  last = count_;
  Choose();
}

// Every candidate's prediction of this sign is checked.
void Period::Follow(uint64_t sign) {
  for (Candidate& candidate : candidates_) {
    if (candidate.period == 0) continue;
    if (count_ > candidate.period && signs_[(count_ - candidate.period) % kSigns] == sign) {
      if (candidate.run < kSigns) ++candidate.run;
      continue;
    }
    const uint32_t most = 2 * candidate.period;
    if (candidate.run >= candidate.needed) {
      candidate.needed = candidate.run < most ? candidate.run + 1 : most;
    }
    candidate.run = 0;
  }
}

// A new candidate takes the place of the one that is furthest from being believed.
void Period::Consider(uint32_t period) {
  if (period < kShortest) return;
  Candidate* weakest = &candidates_[0];
  for (Candidate& candidate : candidates_) {
    if (candidate.period == period) return;
    if (candidate.period == 0) {
      weakest = &candidate;
      break;
    }
    if (candidate.run < weakest->run) weakest = &candidate;
  }
  // One that never matched for long may still be the iteration, but not while another is followed.
  if (weakest->period != 0 && weakest->run >= kContextLength) return;
  *weakest = {period, kContextLength, period};
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
