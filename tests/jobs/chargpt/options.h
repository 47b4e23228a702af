// Command line of chargpt.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_OPTIONS_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_OPTIONS_H_

#include <cstdint>
#include <string>

namespace chargpt {

struct Options {
  int layers = 0;
  int width = 0;
  int heads = 0;
  int context = 0;
  int batch = 0;
  int steps = 0;
  uint64_t seed = 1;
  double learning_rate = 0;
  std::string text = "/usr/share/common-licenses";
  bool quiet = false;
  bool help = false;
};

// Returns an empty string, or one sentence that names flag, value and what is accepted. --size
// comes first whatever its place; the other flags change it.
std::string ParseOptions(int argc, const char* const* argv, Options* options);

const char* HelpText();

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_OPTIONS_H_
