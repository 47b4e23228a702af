// Reader of the log that RMM's logging adaptor writes (comma-separated):
//
//   Thread,Time,Action,Pointer,Size,Stream        header, required
//   <any>,<any>,allocate,0x7f..,bytes,stream      also: free, allocate failure (skipped)
//
// A free of a pointer that no line allocated is a block that was alive before the log began. All
// threads are one process. Pointers may be decimal or hexadecimal with 0x. The text is untrusted.
// Threads: none of its own.

#ifndef TIDEMARK_TESTS_REPLAY_RMM_LOG_H_
#define TIDEMARK_TESTS_REPLAY_RMM_LOG_H_

#include <string>
#include <string_view>

#include "tests/replay/trace.h"

namespace tidemark::replay {

bool LooksLikeRmmLog(std::string_view text);

// False: `*error` is one sentence that names the line.
bool ReadRmmLog(std::string_view text, Trace* trace, std::string* error);

}  // namespace tidemark::replay

#endif  // TIDEMARK_TESTS_REPLAY_RMM_LOG_H_
