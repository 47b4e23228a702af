// The text fuzz target over seeded mutations of well formed texts.

#include <gtest/gtest.h>

#include <random>

#include "daemon/config.h"
#include "daemon/policy.h"
#include "daemon/policy_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tidemark::daemon {
namespace {

std::string Uncommented(std::string text) {
  for (size_t at = text.find("\n#"); at != std::string::npos; at = text.find("\n#", at + 1)) {
    if (text[at + 2] != ' ') text.erase(at + 1, 1);
  }
  return text;
}

TEST(TextFuzz, NoMutationOfATextIsMisread) {
  const Config defaults = DefaultConfig(0, [](const std::string&) { return std::nullopt; });
  const std::string seeds[] = {FormatPolicy(DefaultPolicy()),
                               Uncommented(ConfigText(defaults, defaults)), "16 MiB"};
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text = seeds[random() % 3];
    for (uint32_t i = random() % 4; i > 0; --i) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1, "[]=#\n 0x"[random() % 8]);
          break;
        default:
          text.erase(at, 1 + random() % 9);
      }
      if (text.empty()) text.push_back('x');
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
}

}  // namespace
}  // namespace tidemark::daemon
