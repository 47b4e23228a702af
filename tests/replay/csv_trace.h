// Reader of allocation traces as comma-separated text, version 1:
//
//   # allocation trace v1 ...           first line; further lines that begin with # may say
//   # ... recorded_peak_reserved_bytes=N     what the recording allocator held at most
//   a,id,bytes,stream,time_us           allocate; `id` was never used before
//   f,id,bytes,stream,time_us           the free of that block is complete; same bytes and stream
//
// Allocations at time 0 lead the file: blocks that were alive when the recording began. All numbers
// are decimal and whole; times do not decrease. The text is untrusted. Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_CSV_TRACE_H_
#define TIDEMARK_TESTS_REPLAY_CSV_TRACE_H_

#include <string>
#include <string_view>

#include "tests/replay/trace.h"

namespace tidemark::replay {

// True if `text` begins as such a file does.
bool LooksLikeCsvTrace(std::string_view text);

// False: `*error` is one sentence that names the line.
bool ReadCsvTrace(std::string_view text, Trace* trace, std::string* error);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_CSV_TRACE_H_
