// The re-entry mark of manager.h: one flag per thread.

#include "interpose/manager.h"

namespace tidemark::interpose {
namespace {

// initial-exec: the library is there from the start, and the dynamic TLS model would call malloc in
// the middle of the job's call.
thread_local bool inside __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

Guard::Guard() : entered_(!inside) { inside = true; }

Guard::~Guard() {
  if (entered_) inside = false;
}

}  // namespace tidemark::interpose
