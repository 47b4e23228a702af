// What the preloaded library tells people: one sentence a line on stderr (or in the file that
// TIDEMARK_LOG names), at most 16 per process, none on success. Own formatting, because stdio may
// allocate, lock or be wrapped by the job.
//
// Threads: any. Nothing here allocates, and errno is left as it was.

#ifndef TIDEMARK_INTERPOSE_LOG_H_
#define TIDEMARK_INTERPOSE_LOG_H_

#include <stdarg.h>
#include <stddef.h>

namespace tidemark::interpose {

// Writes "tidemark: <sentence>". The format knows %s %c %d %u %x %p %% and the lengths l, ll, z.
void Warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Formats as Warn does into `buffer` (always terminated, cut at `bytes`). Returns the bytes
// written.
size_t Format(char* buffer, size_t bytes, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
size_t FormatList(char* buffer, size_t bytes, const char* format, va_list list);

}  // namespace tidemark::interpose

#endif  // TIDEMARK_INTERPOSE_LOG_H_
