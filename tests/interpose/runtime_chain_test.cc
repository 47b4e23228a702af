// Which function a call goes on to. The test program stands for the preloaded library: what it asks
// for by name, libc defines.

#include "interpose/runtime_chain.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <stdint.h>

namespace tidemark::interpose {
namespace {

constexpr char kFirst[] = "strlen";
constexpr char kSecond[] = "strnlen";

void* Sum(uintptr_t left, const void* right) {
  return reinterpret_cast<void*>(left ^ reinterpret_cast<uintptr_t>(right));
}

TEST(RuntimeChain, GivesEachCallSiteTheFunctionItCalls) {
  const void* first = dlsym(RTLD_NEXT, kFirst);
  const void* second = dlsym(RTLD_NEXT, kSecond);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  // Own functions and names at distances that call sites can have too.
  static char own[2];
  const uintptr_t apart[] = {
      reinterpret_cast<uintptr_t>(own) ^ reinterpret_cast<uintptr_t>(own + 1),
      reinterpret_cast<uintptr_t>(kFirst) ^ reinterpret_cast<uintptr_t>(kSecond),
  };
  uintptr_t site = 0x555500001000;
  for (const uintptr_t distance : apart) {
    site += 0x1000;
    for (int times = 0; times < 2; ++times) {
      EXPECT_EQ(NextRuntimeFunction(kFirst, own, reinterpret_cast<void*>(site)), first);
      EXPECT_EQ(NextRuntimeFunction(kSecond, own + 1, Sum(site, reinterpret_cast<void*>(distance))),
                second);
    }
  }
}

TEST(RuntimeChain, GivesOneSiteBothFunctionsThatItCalls) {
  void* site = reinterpret_cast<void*>(0x555500009000);
  for (int times = 0; times < 2; ++times) {
    EXPECT_EQ(NextRuntimeFunction(kFirst, nullptr, site), dlsym(RTLD_NEXT, kFirst));
    EXPECT_EQ(NextRuntimeFunction(kSecond, nullptr, site), dlsym(RTLD_NEXT, kSecond));
  }
}

}  // namespace
}  // namespace tidemark::interpose
