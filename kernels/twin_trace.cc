// The receiving end of -fsanitize=thread instrumentation for traced twins: instead of a race
// detector's shadow memory, two bits for every byte touched (read, written), in pages found by
// hash. No libtsan is linked; every symbol here is hidden, so a program that has one is not
// disturbed.
//
// Threads: all state is thread_local.

#include "kernels/twin_trace.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace {

constexpr uintptr_t kPageShift = 12;
constexpr uintptr_t kPageBytes = uintptr_t{1} << kPageShift;
constexpr size_t kWords = kPageBytes / 64;

struct Page {
  uintptr_t number = 0;
  uint64_t touched[2][kWords] = {};  // [read, write]
};

class Trace {
 public:
  void Begin(const tm_twin_launch* launch) {
    launch_ = launch->touch != nullptr ? launch : nullptr;
  }

  void Touch(uintptr_t address, size_t bytes, int write) {
    const uintptr_t number = address >> kPageShift;
    const uintptr_t offset = address & (kPageBytes - 1);
    Page* page = recent_[RecentIndex(number)];
    if (page != nullptr && page->number == number && offset % 64 + bytes <= 64 && bytes < 64) {
      page->touched[write][offset / 64] |= ((uint64_t{1} << bytes) - 1) << (offset % 64);
    } else {
      TouchPages(address, bytes, write);
    }
  }

  void End() {
    if (launch_ == nullptr) return;
    std::sort(used_.begin(), used_.end(),
              [](const Page* a, const Page* b) { return a->number < b->number; });
    for (int write = 0; write < 2; ++write) Report(write);
    for (Page* page : used_) {
      memset(page->touched, 0, sizeof(page->touched));
      free_.push_back(page);
    }
    used_.clear();
    std::fill(slots_.begin(), slots_.end(), nullptr);
    std::fill(recent_, recent_ + kRecent, nullptr);
  }

 private:
  static constexpr size_t kRecent = 64;  // a row of a matrix or two, and the thread's own variables

  // Mixed, because the rows that a kernel walks together often lie a power of two apart.
  static size_t RecentIndex(uintptr_t number) {
    return number * uint64_t{0x9e3779b97f4a7c15} >> 32 & (kRecent - 1);
  }

  void TouchPages(uintptr_t address, size_t bytes, int write) {
    if (launch_ == nullptr) return;
    while (bytes > 0) {
      const uintptr_t offset = address & (kPageBytes - 1);
      const size_t part = std::min<size_t>(bytes, kPageBytes - offset);
      Mark(PageOf(address >> kPageShift)->touched[write], offset, part);
      address += part;
      bytes -= part;
    }
  }

  static void Mark(uint64_t* words, size_t offset, size_t bytes) {
    while (bytes > 0) {
      const size_t bit = offset % 64;
      const size_t part = std::min<size_t>(bytes, 64 - bit);
      const uint64_t ones = part == 64 ? ~uint64_t{0} : (uint64_t{1} << part) - 1;
      words[offset / 64] |= ones << bit;
      offset += part;
      bytes -= part;
    }
  }

  Page* PageOf(uintptr_t number) {
    if (used_.size() * 2 >= slots_.size()) Grow();
    Page*& slot = SlotOf(number);
    if (slot == nullptr) {
      slot = FreshPage();
      slot->number = number;
      used_.push_back(slot);
    }
    recent_[RecentIndex(number)] = slot;
    return slot;
  }

  Page*& SlotOf(uintptr_t number) {
    size_t index = number * uint64_t{0x9e3779b97f4a7c15} >> 32 & (slots_.size() - 1);
    while (slots_[index] != nullptr && slots_[index]->number != number) {
      index = (index + 1) & (slots_.size() - 1);
    }
    return slots_[index];
  }

  void Grow() {
    slots_.assign(std::max<size_t>(64, slots_.size() * 2), nullptr);
    for (Page* page : used_) SlotOf(page->number) = page;
  }

  Page* FreshPage() {
    if (free_.empty()) {
      owned_.push_back(std::make_unique<Page>());
      return owned_.back().get();
    }
    Page* page = free_.back();
    free_.pop_back();
    return page;
  }

  void Report(int write) {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    for (const Page* page : used_) {
      for (size_t word = 0; word < kWords; ++word) {
        uint64_t bits = page->touched[write][word];
        const uintptr_t base = (page->number << kPageShift) + word * 64;
        while (bits != 0) {
          const int first = __builtin_ctzll(bits);
          const uint64_t rest = ~(bits >> first);
          const int length = rest == 0 ? 64 : __builtin_ctzll(rest);
          if (base + first != end) {
            Emit(begin, end, write);
            begin = base + first;
          }
          end = base + first + length;
          bits = first + length == 64 ? 0 : bits >> (first + length) << (first + length);
        }
      }
    }
    Emit(begin, end, write);
  }

  void Emit(uintptr_t begin, uintptr_t end, int write) {
    if (begin == end) return;
    launch_->touch(launch_->touch_context, reinterpret_cast<const void*>(begin), end - begin,
                   write);
  }

  const tm_twin_launch* launch_ = nullptr;
  Page* recent_[kRecent] = {};  // by RecentIndex of the page number
  std::vector<Page*> slots_;    // open addressing, a power of two
  std::vector<Page*> used_;
  std::vector<Page*> free_;
  std::vector<std::unique_ptr<Page>> owned_;
};

// A plain pointer costs every access less than an object with a constructor would.
thread_local Trace* trace;
Trace* TraceOfThread() {
  thread_local Trace owned;
  return &owned;
}

inline void Read(const volatile void* address, size_t bytes) {
  trace->Touch(reinterpret_cast<uintptr_t>(address), bytes, 0);
}
inline void Write(const volatile void* address, size_t bytes) {
  trace->Touch(reinterpret_cast<uintptr_t>(address), bytes, 1);
}
inline void Update(const volatile void* address, size_t bytes) {
  Read(address, bytes);
  Write(address, bytes);
}

}  // namespace

#define TRACE_API extern "C" __attribute__((visibility("hidden")))

TRACE_API void tidemark_twin_trace_begin(const tm_twin_launch* launch) {
  trace = TraceOfThread();
  trace->Begin(launch);
}
TRACE_API void tidemark_twin_trace_end() { trace->End(); }

TRACE_API void __tsan_init() {}
TRACE_API void __tsan_func_entry(void*) {}
TRACE_API void __tsan_func_exit() {}
TRACE_API void __tsan_vptr_read(void** address) { Read(address, sizeof(void*)); }
TRACE_API void __tsan_vptr_update(void** address, void*) { Write(address, sizeof(void*)); }
TRACE_API void __tsan_read_range(void* address, size_t bytes) { Read(address, bytes); }
TRACE_API void __tsan_write_range(void* address, size_t bytes) { Write(address, bytes); }

#define TRACE_ACCESS(bytes)                                                         \
  TRACE_API void __tsan_read##bytes(void* a) { Read(a, bytes); }                    \
  TRACE_API void __tsan_write##bytes(void* a) { Write(a, bytes); }                  \
  TRACE_API void __tsan_read_write##bytes(void* a) { Update(a, bytes); }            \
  TRACE_API void __tsan_volatile_read##bytes(void* a) { Read(a, bytes); }           \
  TRACE_API void __tsan_volatile_write##bytes(void* a) { Write(a, bytes); }         \
  TRACE_API void __tsan_unaligned_read##bytes(void* a) { Read(a, bytes); }          \
  TRACE_API void __tsan_unaligned_write##bytes(void* a) { Write(a, bytes); }        \
  TRACE_API void __tsan_unaligned_read_write##bytes(void* a) { Update(a, bytes); }  \
  TRACE_API void __tsan_unaligned_volatile_read##bytes(void* a) { Read(a, bytes); } \
  TRACE_API void __tsan_unaligned_volatile_write##bytes(void* a) { Write(a, bytes); }
TRACE_ACCESS(1)
TRACE_ACCESS(2)
TRACE_ACCESS(4)
TRACE_ACCESS(8)
TRACE_ACCESS(16)

TRACE_API void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  Read(from, bytes);
  Write(to, bytes);
  return memcpy(to, from, bytes);
}
TRACE_API void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  Read(from, bytes);
  Write(to, bytes);
  return memmove(to, from, bytes);
}
TRACE_API void* __tsan_memset(void* to, int value, size_t bytes) {
  Write(to, bytes);
  return memset(to, value, bytes);
}

// Atomics replace the compiler's own, so they also do the work. Orders are strengthened to seq_cst.
#define TRACE_FETCH(bits, type, name)                                                      \
  TRACE_API type __tsan_atomic##bits##_fetch_##name(volatile void* a, type value, int) {   \
    Update(a, sizeof(type));                                                               \
    return __atomic_fetch_##name(static_cast<volatile type*>(a), value, __ATOMIC_SEQ_CST); \
  }
#define TRACE_COMPARE(bits, type, name, weak)                                                    \
  TRACE_API bool __tsan_atomic##bits##_compare_exchange_##name(volatile void* a, void* expected, \
                                                               type desired, int, int) {         \
    Update(a, sizeof(type));                                                                     \
    return __atomic_compare_exchange_n(static_cast<volatile type*>(a),                           \
                                       static_cast<type*>(expected), desired, weak,              \
                                       __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                      \
  }
// Clang's form: returns what was there.
#define TRACE_COMPARE_VALUE(bits, type)                                                      \
  TRACE_API type __tsan_atomic##bits##_compare_exchange_val(volatile void* a, type expected, \
                                                            type desired, int, int) {        \
    Update(a, sizeof(type));                                                                 \
    __atomic_compare_exchange_n(static_cast<volatile type*>(a), &expected, desired, false,   \
                                __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
    return expected;                                                                         \
  }
#define TRACE_ATOMIC(bits, type)                                                         \
  TRACE_API type __tsan_atomic##bits##_load(const volatile void* a, int) {               \
    Read(a, sizeof(type));                                                               \
    return __atomic_load_n(static_cast<const volatile type*>(a), __ATOMIC_SEQ_CST);      \
  }                                                                                      \
  TRACE_API void __tsan_atomic##bits##_store(volatile void* a, type value, int) {        \
    Write(a, sizeof(type));                                                              \
    __atomic_store_n(static_cast<volatile type*>(a), value, __ATOMIC_SEQ_CST);           \
  }                                                                                      \
  TRACE_API type __tsan_atomic##bits##_exchange(volatile void* a, type value, int) {     \
    Update(a, sizeof(type));                                                             \
    return __atomic_exchange_n(static_cast<volatile type*>(a), value, __ATOMIC_SEQ_CST); \
  }                                                                                      \
  TRACE_FETCH(bits, type, add)                                                           \
  TRACE_FETCH(bits, type, sub)                                                           \
  TRACE_FETCH(bits, type, and)                                                           \
  TRACE_FETCH(bits, type, or)                                                            \
  TRACE_FETCH(bits, type, xor)                                                           \
  TRACE_FETCH(bits, type, nand)                                                          \
  TRACE_COMPARE(bits, type, strong, false)                                               \
  TRACE_COMPARE(bits, type, weak, true)                                                  \
  TRACE_COMPARE_VALUE(bits, type)
TRACE_ATOMIC(8, uint8_t)
TRACE_ATOMIC(16, uint16_t)
TRACE_ATOMIC(32, uint32_t)
TRACE_ATOMIC(64, uint64_t)
TRACE_API void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
TRACE_API void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
