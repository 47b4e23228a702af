// The training text: bytes of a file or of every regular file of a folder, as symbol numbers.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_TEXT_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_TEXT_H_

#include <string>
#include <vector>

namespace chargpt {

struct Text {
  std::vector<int> symbols;  // numbers in [0, symbol_count)
  int symbol_count = 0;
};

// Reads `path`; a folder's files are taken in order of their names, links are passed over. Returns
// an empty string, or one sentence.
std::string ReadText(const std::string& path, Text* text);

// Entropy of single symbols in nats: the loss of the best guess that ignores context.
double UnigramEntropy(const Text& text);

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_TEXT_H_
