// The real driver below us: opened by absolute path at the first call that needs it, never before,
// and never closed. Opening starts nothing: no thread, socket, context or memory.
//
// Threads: any. There is no lock of ours: several threads that come first each open the driver (the
// loader makes that one library) and store the same pointers, so nobody waits for a thread that may
// itself be waiting for the loader.

#ifndef TIDEMARK_INTERPOSE_RESOLVE_H_
#define TIDEMARK_INTERPOSE_RESOLVE_H_

#include <stdint.h>

#include "kernels/driver.h"

namespace tidemark::interpose {

// The functions that Tidemark itself calls, valid for the life of the process. Null, with the
// reason in
// `*why`, when there is no driver or it lacks a function that Tidemark or a required hook needs.
const kernels::Driver* RealDriver(const char** why);

// The real driver's function in `slot` (kSlot_NAME of hook_calls.h), or null when it has none.
void* RealEntry(uint32_t slot);

// What a look-up of `symbol` that the real driver answered with `real` should answer: our hook of
// exactly that function and version, or `real` itself.
void* Substitute(void* real, const char* symbol);

// Both names without version and per-thread suffixes are equal ("cuMemAlloc_v2" and "cuMemAlloc").
bool SameBaseName(const char* left, const char* right);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_RESOLVE_H_
