// After how many signs a sequence of signs repeats: launches of a job (iteration.h), requests of
// memory (placement_plan.h). A guess; nothing may rest on it but speed.
//
// A period is believed when one whole repetition matched; one that broke before (a layer, not the
// step) must then hold for longer than it ever did, up to two repetitions, so the layers of a net
// do not pass for its iteration.
//
// Not here: what the signs stand for. Threads: none of its own.

#ifndef TIDEMARK_CORE_PERIOD_H_
#define TIDEMARK_CORE_PERIOD_H_

#include "core/array.h"

namespace tidemark::core {

class Period {
 public:
  static constexpr uint32_t kSigns = 1 << 15;  // the longest period is half of this

  // False: out of host memory; the object is then of no use.
  bool Init();

  void Add(uint64_t sign);
  // Signs so far.
  uint64_t count() const { return count_; }
  // Signs in one repetition; 0: not known at present.
  uint32_t length() const { return length_; }

  // `sum` with `value` mixed in.
  static uint64_t Mix(uint64_t sum, uint64_t value) {
    sum = (sum ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
  }

 private:
  static constexpr int kCandidates = 4;
  static constexpr uint32_t kContexts = 1 << 13;
  static constexpr uint32_t kContextLength = 4;
  static constexpr uint32_t kShortest = 3;
  struct Candidate {
    uint32_t period = 0;             // 0: none
    uint32_t needed = ~uint32_t{0};  // signs that matched from which on it is believed
    uint64_t start = 0;              // those after this one have matched
  };

  uint32_t RunOf(const Candidate& candidate) const {
    const uint64_t run = count_ - candidate.start;
    return run < kSigns ? static_cast<uint32_t>(run) : kSigns;
  }
  void Follow(uint64_t sign);
  void Break(Candidate* candidate);
  void Consider(uint32_t period);
  void Choose();
  uint64_t EligibleFrom(const Candidate& candidate, uint64_t first_start) const;

  Candidate candidates_[kCandidates];
  uint32_t length_ = 0;
  uint64_t count_ = 0;
  uint64_t context_ = 0;      // of the last kContextLength signs
  uint64_t outdone_by_ = 0;   // start of the one next to which a believed one is too short; 0: none
  uint64_t choose_at_ = 0;    // before this sign length_ changes only where a candidate breaks
  Array<uint64_t> signs_;     // ring by number, counted from 1
  Array<uint64_t> contexts_;  // the last sign that ended in this context
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_PERIOD_H_
