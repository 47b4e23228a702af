// The session fuzz target over seeded mutations of well formed conversations.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "daemon/wire_message.h"
#include "tests/daemon/test_node.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tidemark::daemon {
namespace {

using Bytes = std::vector<uint8_t>;

template <typename Message>
void Add(const Message& message, Bytes* input) {
  input->push_back(sizeof(message) & 0xff);
  input->push_back(sizeof(message) >> 8);
  const Bytes bytes = BytesOf(message);
  input->insert(input->end(), bytes.begin(), bytes.end());
}

// HELLO, then requests of every kind. The fuzz target's first chunk ids are those of start 1.
Bytes Conversation(std::mt19937* random) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>((*random)() % n); };
  Bytes input;
  Add(HelloOf("fuzz", 1 + below(3), below(4)), &input);
  for (uint32_t i = 0; i < 1 + below(8); ++i) {
    const uint64_t chunk = (uint64_t{1} << 32) + 1 + below(40);
    const std::vector<uint64_t> chunks = {chunk, chunk + 1};
    switch (below(6)) {
      case 0:
        Add(LeaseOf(1 + below(70), 1 + below(4), below(2), below(3)), &input);
        break;
      case 1:
        Add(ChunksOf(TM_WIRE_RETURN, chunks, below(2), below(3)), &input);
        break;
      case 2:
        Add(ChunksOf(TM_WIRE_ADOPT, chunks, below(2), below(3)), &input);
        break;
      case 3:
        Add(ShareOf(TM_WIRE_SHARE, 1 + below(3), chunks, 2), &input);
        break;
      case 4:
        Add(ShareOf(TM_WIRE_OPEN_SHARE, 1 + below(3), {}, 1 + below(64)), &input);
        break;
      default:
        Add(LeaseOf(1 + below(20), 1), &input);
    }
  }
  return input;
}

void Mutate(std::mt19937* random, Bytes* input) {
  const auto below = [&](size_t n) { return static_cast<size_t>((*random)()) % n; };
  for (size_t i = below(6); i > 0; --i) {
    uint8_t& byte = (*input)[below(input->size())];
    switch (below(3)) {
      case 0:
        byte = static_cast<uint8_t>((*random)());
        break;
      case 1:
        byte = static_cast<uint8_t>(byte ^ (1u << below(8)));
        break;
      default:
        byte = below(2) == 0 ? 0xff : 0;
    }
  }
  if (below(8) == 0) input->resize(below(input->size()) + 1);
}

TEST(SessionFuzz, NoStreamOfDatagramsBreaksTheBooks) {
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    Bytes input = Conversation(&random);
    Mutate(&random, &input);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

TEST(SessionFuzz, SeedsForLibFuzzerAreWrittenOnRequest) {
  const char* folder = std::getenv("TIDEMARK_FUZZ_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "needs TIDEMARK_FUZZ_CORPUS, a folder to write seeds to";
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const Bytes input = Conversation(&random);
    WriteFile(std::string(folder) + "/" + std::to_string(seed),
              std::string(input.begin(), input.end()));
  }
}

TEST(SessionFuzz, NoiseIsDropped) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Bytes input(random() % 600);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
}

}  // namespace
}  // namespace tidemark::daemon
