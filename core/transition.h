// How many chunks are in use while the buffers of a job change from where they lie to where a plan
// wants them, played ahead: buffers stay where they are until they are freed, requests go to their
// places, or anywhere where the bytes of their place are not free yet.
//
// Not here: what is planned (placement_plan.h), what fits (arena_plan.cc). Threads: none of its
// own.

#ifndef TIDEMARK_CORE_TRANSITION_H_
#define TIDEMARK_CORE_TRANSITION_H_

#include "core/array.h"
#include "core/units.h"

namespace tidemark::core {

class Transition {
 public:
  // Chunks below `chunks`, none in use. False: out of memory, as with all the others; nothing is
  // known then.
  bool Begin(ChunkIndex chunks);
  // `chunk` has `live` buffers in it to begin with.
  void SetLive(ChunkIndex chunk, uint32_t live) { live_[chunk] = live; }
  // A buffer in [first, last], there already, is freed at `time`.
  bool Free(uint32_t time, ChunkIndex first, ChunkIndex last) {
    return changes_.Append({time * 2, first, last});
  }
  // A buffer in [first, last] from `begin` to `end`. At the same time, ends come first.
  bool Use(uint32_t begin, uint32_t end, ChunkIndex first, ChunkIndex last) {
    return changes_.Append({begin * 2 + 1, first, last}) && Free(end, first, last);
  }
  // `units` of kBlockBytes anywhere from `begin` to `end`.
  bool UseElsewhere(uint32_t begin, uint32_t end, uint32_t units) {
    return changes_.Append({begin * 2 + 1, kElsewhere, units}) &&
           changes_.Append({end * 2, kElsewhere, units});
  }
  // Plays it; to be asked once. The most chunks in use at once: where what lies anywhere is where
  // others leave room, and where each of it is in chunks of its own.
  struct InUse {
    uint64_t likely = 0;
    uint64_t at_worst = 0;
  };
  InUse MostInUse();

 private:
  static constexpr ChunkIndex kElsewhere = ~ChunkIndex{0};
  struct Change {
    uint32_t when = 0;  // twice the time; odd: begins
    ChunkIndex first = 0;
    uint32_t last = 0;  // with kElsewhere: units
  };
  int64_t Apply(const Change& change);

  Array<uint32_t> live_;  // buffers by chunk
  Array<Change> changes_;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_TRANSITION_H_
