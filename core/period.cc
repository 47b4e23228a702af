// Implementation of core/period.h. Threads: as the header says.

#include "core/period.h"

#include <algorithm>

#include "core/rolling_hash.h"

namespace tidemark::core {

bool Period::Init() { return signs_.Resize(kSigns) && contexts_.Resize(kContexts); }

void Period::Add(uint64_t sign) {
  Follow(sign);
  const bool full = count_ >= kContextLength;
  const uint64_t leaves = full ? signs_[(count_ - kContextLength + 1) % kSigns] : 0;
  context_ = Roll<kContextLength>(context_, sign, leaves);
  signs_[++count_ % kSigns] = sign;
  uint64_t& last = contexts_[context_ * kRoll >> 32 & (kContexts - 1)];
  if (last != 0 && count_ - last < kSigns / 2) Consider(static_cast<uint32_t>(count_ - last));
  last = count_;
  if (count_ >= choose_at_) Choose();
}

inline void Period::Break(Candidate* candidate) {
  const uint64_t run = count_ - candidate->start;
  if (run >= candidate->needed) {
    candidate->needed = std::min(RunOf(*candidate) + 1, 2 * candidate->period);
    choose_at_ = 0;
  } else if (candidate->start <= outdone_by_) {
    choose_at_ = 0;
  }
  candidate->start = count_ + 1;
}

// Every candidate's prediction of the sign to come is checked.
void Period::Follow(uint64_t sign) {
  for (Candidate& candidate : candidates_) {
    if (signs_[(count_ + 1 - candidate.period) % kSigns] != sign) Break(&candidate);
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
    if (candidate.start > weakest->start) weakest = &candidate;
  }
  // One that never matched for long may still be the iteration, but not while another is followed.
  if (weakest->period != 0 && RunOf(*weakest) >= kContextLength) return;
  *weakest = {period, period, count_ - kContextLength};
  choose_at_ = std::min(choose_at_, weakest->start + weakest->needed);
}

// The shortest of those that have held for about as long as any: twice an iteration is one as well,
// and a layer repeats only until its pass ends.
void Period::Choose() {
  uint64_t first_start = count_;
  for (const Candidate& candidate : candidates_) {
    if (candidate.period != 0) first_start = std::min(first_start, candidate.start);
  }
  length_ = 0;
  outdone_by_ = 0;
  choose_at_ = ~uint64_t{0};
  for (const Candidate& candidate : candidates_) {
    if (candidate.period == 0) continue;
    const uint64_t from = EligibleFrom(candidate, first_start);
    if (from > count_) {
      choose_at_ = std::min(choose_at_, from);
      if (RunOf(candidate) >= candidate.needed) outdone_by_ = first_start;
    } else if (length_ == 0 || candidate.period < length_) {
      length_ = candidate.period;
    }
  }
}

// Not before this sign, unless the one that has held for longest breaks: a run is long enough from
// half of the longest on, and more than kSigns are not told apart.
uint64_t Period::EligibleFrom(const Candidate& candidate, uint64_t first_start) const {
  if (RunOf(candidate) < candidate.needed) return candidate.start + candidate.needed;
  const uint64_t as_long = 2 * candidate.start - first_start;
  const uint64_t half_of_longest = as_long - (as_long != 0 ? 1 : 0);
  return std::min(half_of_longest, candidate.start + kSigns / 2);
}

}  // namespace tidemark::core
