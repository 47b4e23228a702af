// When requests that take turns are alive twice: made anew while the old one is still there.
// Threads: none of its own.

#ifndef TIDEMARK_CORE_TURN_MARK_H_
#define TIDEMARK_CORE_TURN_MARK_H_

#include <cstdint>

namespace tidemark::core {

// A time at which a request begins or ends to be alive twice. Values sort by size, then by time;
// ends come before begins.
struct TurnMark {
  static constexpr uint64_t kWraps = 1;  // an end of what began in the period before
  static constexpr uint64_t kBegins = 2;
  static uint64_t Of(uint32_t units, uint32_t at, uint64_t flags) {
    return uint64_t{units} << 32 | uint64_t{at} << 2 | flags;
  }
  static uint32_t Units(uint64_t mark) { return static_cast<uint32_t>(mark >> 32); }
  static uint32_t At(uint64_t mark) { return static_cast<uint32_t>(mark) >> 2; }
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_TURN_MARK_H_
