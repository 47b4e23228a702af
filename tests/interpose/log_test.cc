// The preloaded library's own formatting and its limit on warnings.

#include "interpose/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

namespace tidemark::interpose {
namespace {

TEST(LogTest, FormatsAsPrintfDoes) {
  char text[256];
  size_t bytes = Format(text, sizeof(text), "%s %d %u %lu %zu %ld %x %p %c %%", "word", -7, 7u,
                        std::numeric_limits<unsigned long>::max(), size_t{9},
                        std::numeric_limits<long>::min(), 255u, reinterpret_cast<void*>(0x1f), 'q');
  EXPECT_STREQ(text, "word -7 7 18446744073709551615 9 -9223372036854775808 ff 0x1f q %");
  EXPECT_EQ(bytes, std::string(text).size());
}

TEST(LogTest, CutsAtTheBuffersEnd) {
  char text[6];
  EXPECT_EQ(Format(text, sizeof(text), "%s", "longer than that"), 5u);
  EXPECT_STREQ(text, "longe");
}

TEST(LogTest, SaysAtMostSixteenThingsInTheNamedFile) {
  char path[] = "/tmp/tidemark-log-XXXXXX";
  close(mkstemp(path));
  setenv("TIDEMARK_LOG", path, 1);
  for (int i = 1; i <= 100; ++i) Warn("sentence %d", i);
  std::ifstream file(path);
  int lines = 0;
  std::string line, last;
  for (; std::getline(file, line); ++lines) last = line;
  EXPECT_EQ(lines, 16);
  EXPECT_EQ(last, "tidemark: sentence 16 (further warnings are not shown)");
  unlink(path);
}

}  // namespace
}  // namespace tidemark::interpose
