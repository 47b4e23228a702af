// The driver's table with a counter in front of each function: how often each was called, and which
// call is to fail. Only what the code under test calls through the table counts.
//
// Threads: one test thread.

#ifndef TIDEMARK_TESTS_INTERPOSE_COUNTED_DRIVER_H_
#define TIDEMARK_TESTS_INTERPOSE_COUNTED_DRIVER_H_

#include <dlfcn.h>

#include <map>
#include <string>

#include "kernels/driver.h"

namespace tidemark::interpose {

struct CallCounts {
  std::map<std::string, int> of;
  int all = 0;
  int fail_at = 0;  // the n-th call from Reset() on fails, without reaching the driver; 0: none
  std::string failed;
  void Reset(int fail) { all = 0, fail_at = fail, of.clear(), failed.clear(); }
};
inline CallCounts call_counts;
inline kernels::Driver real_driver;

// True when this call is to fail.
inline bool CountCall(const char* name) {
  ++call_counts.of[name];
  if (++call_counts.all != call_counts.fail_at) return false;
  call_counts.failed = name;
  return true;
}

template <auto kMember, const char* kName, typename Function>
struct Counted;
template <auto kMember, const char* kName, typename... Arguments>
struct Counted<kMember, kName, CUresult (*)(Arguments...)> {
  static CUresult Call(Arguments... arguments) {
    if (CountCall(kName)) return CUDA_ERROR_UNKNOWN;
    return (real_driver.*kMember)(arguments...);
  }
};

#define TIDEMARK_DRIVER_REQUIRED(name, exported) inline constexpr char kNameOf_##name[] = #name;
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) inline constexpr char kNameOf_##name[] = #name;
#include "kernels/driver_functions.def"
#undef TIDEMARK_DRIVER_REQUIRED
#undef TIDEMARK_DRIVER_OPTIONAL

// The driver that the loader finds (the software GPU, see memory_tests.cmake), counted. Null when
// it lacks a function.
inline const kernels::Driver* CountedDriver() {
  static kernels::Driver counted;
  static const char* missing = [] {
    const char* lacks = kernels::LoadDriver(dlopen("libcuda.so.1", RTLD_NOW), &real_driver);
    counted = real_driver;
// Two macros with one body: a name that passes through a second macro would become its versioned
// self.
#define TIDEMARK_DRIVER_REQUIRED(name, exported) \
  counted.name =                                 \
      &Counted<&kernels::Driver::name, kNameOf_##name, decltype(kernels::Driver::name)>::Call;
#define TIDEMARK_DRIVER_OPTIONAL(name, exported) \
  if (real_driver.name != nullptr)               \
    counted.name =                               \
        &Counted<&kernels::Driver::name, kNameOf_##name, decltype(kernels::Driver::name)>::Call;
#include "kernels/driver_functions.def"
#undef TIDEMARK_DRIVER_REQUIRED
#undef TIDEMARK_DRIVER_OPTIONAL
    return lacks;
  }();
  return missing == nullptr ? &counted : nullptr;
}

}  // namespace tidemark::interpose

#endif  // TIDEMARK_TESTS_INTERPOSE_COUNTED_DRIVER_H_
