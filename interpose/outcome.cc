// See outcome.h.

#include "interpose/outcome.h"

namespace tidemark::interpose {
namespace {

thread_local CUresult known __attribute__((tls_model("initial-exec"))) = CUDA_SUCCESS;

}  // namespace

KnownOutcome::KnownOutcome(CUresult outcome) { known = outcome; }

KnownOutcome::~KnownOutcome() { known = CUDA_SUCCESS; }

bool TakeKnownOutcome(CUresult* outcome) {
  if (known == CUDA_SUCCESS) return false;
  *outcome = known;
  known = CUDA_SUCCESS;
  return true;
}

}  // namespace tidemark::interpose
