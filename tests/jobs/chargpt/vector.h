// A few neighbouring floats that are added and scaled together: a vector register on the host,
// plain registers on a GPU. No operation mixes lanes, so the bits are the same either way.

#ifndef TIDEMARK_TESTS_JOBS_CHARGPT_VECTOR_H_
#define TIDEMARK_TESTS_JOBS_CHARGPT_VECTOR_H_

#include "kernels/host_twin.h"

#if defined(__CUDACC__)

template <int kWidth>
struct Floats {
  float lane[kWidth];
};
template <int kWidth>
TIDEMARK_DEVICE Floats<kWidth> LoadFloats(const float* from) {
  Floats<kWidth> all;
  for (int i = 0; i < kWidth; ++i) all.lane[i] = from[i];
  return all;
}
template <int kWidth>
TIDEMARK_DEVICE void StoreFloats(float* to, const Floats<kWidth>& all) {
  for (int i = 0; i < kWidth; ++i) to[i] = all.lane[i];
}
template <int kWidth>
TIDEMARK_DEVICE void AddScaled(Floats<kWidth>& sum, float factor, const Floats<kWidth>& term) {
  for (int i = 0; i < kWidth; ++i) sum.lane[i] += factor * term.lane[i];
}

#else

template <int kWidth>
struct Floats {
  typedef float Register __attribute__((vector_size(kWidth * sizeof(float))));
  typedef float Memory __attribute__((vector_size(kWidth * sizeof(float)), aligned(4), may_alias));
  Register lanes;
};
template <int kWidth>
TIDEMARK_DEVICE Floats<kWidth> LoadFloats(const float* from) {
  return {*reinterpret_cast<const typename Floats<kWidth>::Memory*>(from)};
}
template <int kWidth>
TIDEMARK_DEVICE void StoreFloats(float* to, const Floats<kWidth>& all) {
  *reinterpret_cast<typename Floats<kWidth>::Memory*>(to) = all.lanes;
}
template <int kWidth>
TIDEMARK_DEVICE void AddScaled(Floats<kWidth>& sum, float factor, const Floats<kWidth>& term) {
  sum.lanes += factor * term.lanes;
}

#endif

#endif  // TIDEMARK_TESTS_JOBS_CHARGPT_VECTOR_H_
