// Compares a text with a file under tests/golden. With TIDEMARK_UPDATE_GOLDEN=1 in the environment
// the file is written instead, to be read before it is committed.

#ifndef TIDEMARK_TESTS_GOLDEN_GOLDEN_H_
#define TIDEMARK_TESTS_GOLDEN_GOLDEN_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace tidemark {

inline std::string GoldenPath(const std::string& name) {
  return std::string(TIDEMARK_GOLDEN_DIR) + "/" + name;
}

inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = GoldenPath(name);
  if (std::getenv("TIDEMARK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_TRUE(file) << path << " is missing; run with TIDEMARK_UPDATE_GOLDEN=1 and read the result";
  EXPECT_EQ(text, expected.str()) << "differs from " << path;
}

}  // namespace tidemark

#endif  // TIDEMARK_TESTS_GOLDEN_GOLDEN_H_
