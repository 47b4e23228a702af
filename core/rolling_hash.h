// A hash of the last few signs of a sequence that the oldest can be taken out of again: a sum of
// the signs times powers of an odd number (Karp and Rabin 1987, modulo 2^64). Threads: no state.

#ifndef TIDEMARK_CORE_ROLLING_HASH_H_
#define TIDEMARK_CORE_ROLLING_HASH_H_

#include <cstdint>

namespace tidemark::core {

inline constexpr uint64_t kRoll = UINT64_C(0x9e3779b97f4a7c15);

constexpr uint64_t PowerOfRoll(uint32_t exponent) {
  return exponent == 0 ? 1 : kRoll * PowerOfRoll(exponent - 1);
}

// The hash of the last `signs` signs after one more. `leaves`: the sign that is then one too old; 0
// as long as there is none.
template <uint32_t signs>
constexpr uint64_t Roll(uint64_t hash, uint64_t enters, uint64_t leaves = 0) {
  return hash * kRoll + enters - leaves * PowerOfRoll(signs);
}

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_ROLLING_HASH_H_
