// What a traced twin calls around its work. Between begin and end on one operating-system thread,
// twin_trace.cc collects the loads and stores that the compiler's instrumentation reports, and end
// hands them to launch->touch as runs of bytes: each byte at most once as read and once as written.
//
// Threads: state is per operating-system thread. Calls of fibers on one thread may interleave, as
// long as they belong to one launch.

#ifndef TIDEMARK_KERNELS_TWIN_TRACE_H_
#define TIDEMARK_KERNELS_TWIN_TRACE_H_

#include "kernels/host_twin_abi.h"

extern "C" {
__attribute__((visibility("hidden"))) void tidemark_twin_trace_begin(const tm_twin_launch* launch);
__attribute__((visibility("hidden"))) void tidemark_twin_trace_end();
}

#endif  // TIDEMARK_KERNELS_TWIN_TRACE_H_
