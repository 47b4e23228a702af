// Says on stderr what is being worked on, when a terminal is there to see it. Threads: any.

#ifndef TIDEMARK_TESTS_BENCH_PROGRESS_H_
#define TIDEMARK_TESTS_BENCH_PROGRESS_H_

#include <unistd.h>

#include <cstdio>
#include <string>

namespace tidemark::bench {

inline void Progress(const std::string& board, const std::string& what) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "%s: %s\n", board.c_str(), what.c_str());
}

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_PROGRESS_H_
