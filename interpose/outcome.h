// An outcome that the runtime seam already has and the driver seam must answer. When the arena says
// "out of memory" to cudaMalloc, the real cudaMalloc still has to run, so that its error state is
// right; the allocation that it then asks of the driver must not be tried (and counted) again.
//
// Thread-local; lives only around the one call into the real runtime.

#ifndef TIDEMARK_INTERPOSE_OUTCOME_H_
#define TIDEMARK_INTERPOSE_OUTCOME_H_

#include <cuda.h>

namespace tidemark::interpose {

class KnownOutcome {
 public:
  explicit KnownOutcome(CUresult outcome);
  ~KnownOutcome();
  KnownOutcome(const KnownOutcome&) = delete;
  KnownOutcome& operator=(const KnownOutcome&) = delete;
};

// True once per KnownOutcome on this thread, with its outcome.
bool TakeKnownOutcome(CUresult* outcome);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_OUTCOME_H_
