// A small generator whose numbers are the same on every machine.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_

#include <cstdint>

#include "tests/split_mix.h"

namespace chargpt {

class Random : public tidemark::SplitMix {
 public:
  using SplitMix::SplitMix;

  uint64_t Below(uint64_t bound) { return Next() % bound; }
  // Close to normal, mean 0, deviation 1: a centred sum of twelve uniform numbers, without libm.
  float Normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(Next() >> 11) * 0x1p-53;
    return static_cast<float>(sum);
  }
};

}  // namespace chargpt

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_RANDOM_H_
