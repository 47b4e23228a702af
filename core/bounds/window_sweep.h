// The least traffic that any eviction policy needs inside each window of a step, in one direction,
// by Belady's rule in bytes. Not a time: bounds.cc weighs traffic against durations and rates.
// Threads: none of its own.
//
// A window goes from the end of operation s to the start of operation s + length, cyclically. What
// is resident at its start is free to choose; a gap that ends inside the window costs its absent
// bytes once. Evicting from the gap that ends last is optimal, whatever the window's end (Belady's
// rule is optimal for every prefix), so one sweep from s gives all windows that start there.

#ifndef TIDEMARK_CORE_BOUNDS_WINDOW_SWEEP_H_
#define TIDEMARK_CORE_BOUNDS_WINDOW_SWEEP_H_

#include <cstdint>

#include "core/array.h"
#include "core/bounds/idle_gaps.h"

namespace tidemark::core {

class WindowSweep {
 public:
  // `gaps` sorted by `from`; kept by reference, as is `demand`. False: no host memory.
  [[nodiscard]] bool Init(const Array<int64_t>& demand, const Array<IdleGap>& gaps);

  // traffic[l], l in [1, operations]: least bytes for the window from `start` of length l.
  // traffic[0] is 0.
  void Run(uint32_t start, int64_t* traffic);

 private:
  struct Open {
    int64_t bytes;
    int32_t next;
  };
  void Add(uint32_t to, int64_t bytes);
  void AddOpenAt(uint32_t start);
  void Evict(int64_t need, int64_t* returns, int64_t* away);
  int32_t Last() const;

  uint32_t n_ = 0;
  const Array<int64_t>* demand_ = nullptr;
  const Array<IdleGap>* gaps_ = nullptr;
  Array<uint32_t> first_;     // per operation: its first gap in gaps_
  Array<int64_t> resident_;   // per end, relative to the start: resident bytes of open gaps
  Array<uint64_t> occupied_;  // ends with resident_ != 0, one bit each ...
  Array<uint64_t> summary_;   // ... and words of occupied_ that are not 0
  Array<int64_t> returns_;    // per end: absent bytes that come back there
};

// The same step read backwards, where copies out take the place of copies in: operation i becomes
// n - 1 - i, and a span's two ends swap. False: no host memory.
[[nodiscard]] bool Mirror(const Array<IdleGap>& gaps, uint32_t ops, Array<IdleGap>* mirrored);
[[nodiscard]] bool Mirror(const Array<int64_t>& demand, Array<int64_t>* mirrored);

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_WINDOW_SWEEP_H_
