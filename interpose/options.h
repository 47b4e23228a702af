// The preloaded library's options: one table (options.def), read from the environment once. A value
// that is not understood costs one sentence and turns Tidemark off for this process: the job goes
// on without it rather than under a budget nobody asked for.
//
// Threads: GetOptions may be called from any thread; the result never changes afterwards.

#ifndef TIDEMARK_INTERPOSE_OPTIONS_H_
#define TIDEMARK_INTERPOSE_OPTIONS_H_

#include <stddef.h>
#include <stdint.h>

namespace tidemark::interpose {

// A memory size as people give it: bytes, or a share of something only known later.
struct OptionSize {
  uint64_t bytes = 0;  // set when share is 0
  double share = 0;    // above 0 up to 1, of the device's (or host's) memory
  bool given = false;
  // The size in bytes when the whole is `whole_bytes`; `whole_bytes` when none was given.
  uint64_t Of(uint64_t whole_bytes) const;
};

using OptionFlag = bool;
using OptionText = const char*;  // never null

struct Options {
#define TIDEMARK_OPTION(kind, field, variable, fallback, meaning) Option##kind field{};
#include "interpose/options.def"
#undef TIDEMARK_OPTION
};

// The options of this process. `disable` is also set when a value was not understood.
const Options& GetOptions();

// Parses what core::ParseBytes does, "4GiB", "1.5 GiB", "1048576" or "40%". Returns false for
// anything else and for nothing at all.
bool ParseSize(const char* text, OptionSize* size);

// Fills `options` by asking `lookup` (getenv's contract) for each variable. Returns true, or false
// with a sentence without newline in `why` (at most `why_bytes` bytes) about the first bad value.
bool ParseOptions(const char* (*lookup)(const char*), Options* options, char* why,
                  size_t why_bytes);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_OPTIONS_H_
