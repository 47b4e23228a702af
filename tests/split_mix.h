// SplitMix64: numbers that look random, the same on every machine. Threads: none of its own.

#ifndef TIDEMARK_TESTS_SPLIT_MIX_H_
#define TIDEMARK_TESTS_SPLIT_MIX_H_

#include <cstdint>

namespace tidemark {

class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = state_ += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

}  // namespace tidemark

#endif  // TIDEMARK_TESTS_SPLIT_MIX_H_
