// When the memory side starts, and what fork does to it.
//
// Start: after the job's own successful cuInit and at no other time; loading the library, looking a
// name up or asking for the version starts nothing. Fork: a child begins as a process that has not
// called cuInit. Exec and exit need nothing: the library keeps no state outside the process and has
// no destructors, so calls made by other libraries' exit handlers still work.

#ifndef TIDEMARK_INTERPOSE_START_H_
#define TIDEMARK_INTERPOSE_START_H_

#include "interpose/manager.h"

namespace tidemark::interpose {

// Starts the memory side once per process, unless options or the driver forbid it. Other threads
// whose cuInit succeeds meanwhile wait a bounded time, so that their first allocation is managed
// too.
void StartAfterInit(const Guard& guard);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_START_H_
