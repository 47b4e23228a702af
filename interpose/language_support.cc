// What C++ needs below it inside the preloaded library, so that libstdc++ is not linked in: its
// exception machinery has a constructor that allocates in every process of a job, CUDA or not.
//
// Only the operators that answer null are here: code that needs a throwing `new`, an exception or a
// virtual base of the library does not link. Hidden by the version script, so the job's own
// operators are not replaced.

#include <sched.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace std {
const nothrow_t nothrow{};
}

void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return malloc(bytes); }
void operator delete(void* memory) noexcept { free(memory); }
void operator delete[](void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }
void operator delete[](void* memory, size_t) noexcept { free(memory); }

// First use of a function's static object: byte 0 says done, byte 1 that a thread is at it.
extern "C" int __cxa_guard_acquire(uint8_t* guard) {
  for (;;) {
    if (__atomic_load_n(&guard[0], __ATOMIC_ACQUIRE) != 0) return 0;
    if (__atomic_exchange_n(&guard[1], uint8_t{1}, __ATOMIC_ACQUIRE) == 0) break;
    sched_yield();
  }
  if (guard[0] == 0) return 1;
  __atomic_store_n(&guard[1], uint8_t{0}, __ATOMIC_RELEASE);
  return 0;
}

extern "C" void __cxa_guard_release(uint8_t* guard) {
  __atomic_store_n(&guard[0], uint8_t{1}, __ATOMIC_RELEASE);
  __atomic_store_n(&guard[1], uint8_t{0}, __ATOMIC_RELEASE);
}
