// A small generator whose numbers are the same on every machine.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_

#include <cstdint>

namespace chargpt {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {  // SplitMix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // Close to normal, mean 0, deviation 1: a centred sum of twelve uniform numbers, without libm.
  float Normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(Next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }

 private:
  uint64_t state_;
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_
