// Device arithmetic shared by the kernels: sums in a fixed order that a compiler can vectorise
// without being allowed to reorder, and an exponential that is the same on every machine.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_LANES_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_LANES_H_

#include "kernels/host_twin.h"

constexpr int kLanes = 8;

TIDEMARK_DEVICE float SumLanes(const float* lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// Sum of term(i) for i in [0, count).
template <typename Term>
TIDEMARK_DEVICE float LaneSum(int count, Term term) {
  float lane[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int j = 0; j < kLanes; ++j) lane[j] += term(i + j);
  }
  for (int j = 0; i + j < count; ++j) lane[j] += term(i + j);
  return SumLanes(lane);
}

// e^x for x <= 88, relative error below 1e-6; 0 below -87. Branch-free: 2^n by exponent bits, the
// rest by the polynomial of Cephes expf.
TIDEMARK_DEVICE float Exp(float x) {
  const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float clamped = x < -87.0f ? -87.0f : x;
  const float shifted = clamped * 1.44269504f + magic;
  const float n = shifted - magic;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  const float fraction = (p * r * r + r) + 1.0f;
  const int exponent = __float_as_int(shifted) << 23;
  const float result = __int_as_float(__float_as_int(fraction) + exponent);
  return x < -87.0f ? 0.0f : result;
}

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_LANES_H_
