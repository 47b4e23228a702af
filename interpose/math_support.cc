// The two functions of libm that the planner calls, so that the preloaded library needs libc alone.
// Hidden by the version script: the job's own libm is not replaced.

#include <stdint.h>
#include <string.h>

// Half away from zero, as in C; `x` is within the range of the result.
extern "C" long long llround(double x) noexcept {
  const auto whole = static_cast<long long>(x);
  const double rest = x - static_cast<double>(whole);
  if (rest >= 0.5) return whole + 1;
  return rest <= -0.5 ? whole - 1 : whole;
}

// The next float after `from` on the way to `to`; finite arguments.
extern "C" float nextafterf(float from, float to) noexcept {
  uint32_t bits;
  if (from == to) return to;
  if (from == 0) {
    bits = to > 0 ? 1u : 0x80000001u;
  } else {
    memcpy(&bits, &from, sizeof(bits));
    // Bits count away from zero.
    bits += (from < to) == (from > 0) ? 1u : ~0u;
  }
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}
