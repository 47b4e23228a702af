// The next definition of a runtime function after ours: the job's own libcudart, or another
// preloaded library that wraps it. There may be none (a program without a shared runtime) or
// several (a plugin with its own).
//
// Threads: any; no lock of ours.

#ifndef TIDEMARK_INTERPOSE_RUNTIME_CHAIN_H_
#define TIDEMARK_INTERPOSE_RUNTIME_CHAIN_H_

namespace tidemark::interpose {

// The function `name`, a literal, that a caller at `return_address` would have reached without us,
// or null. `own` is ours of that name, null when we define none.
void* NextRuntimeFunction(const char* name, void* own, const void* return_address);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_RUNTIME_CHAIN_H_
