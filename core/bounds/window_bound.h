// The windowed I/O bound: the longest chain of disjoint windows around one iteration, where a
// window takes at least its operations' time and at least the time of the traffic that Belady's
// rule forces through it. Threads: none of its own.

#ifndef TIDEMARK_CORE_BOUNDS_WINDOW_BOUND_H_
#define TIDEMARK_CORE_BOUNDS_WINDOW_BOUND_H_

#include <cstdint>

#include "core/array.h"
#include "core/bounds.h"
#include "core/bounds/idle_gaps.h"
#include "core/bounds/window_sweep.h"
#include "core/step.h"

namespace tidemark::core {

// Least time, in ns, in which the link pair carries both amounts, by any mixture of "out alone",
// "in alone" and "both".
double TransferTime(const Machine& machine, double bytes_out, double bytes_in);

class WindowBound {
 public:
  // All are kept by reference.
  WindowBound(const IdleGaps& gaps, const Machine& machine, Granularity granularity)
      : gaps_(gaps), machine_(machine), granularity_(granularity) {}

  [[nodiscard]] bool Run();

  double stall() const { return stall_; }  // ns on top of the durations

 private:
  // The step takes at least `stall` ns longer than its operations between operation `start` and the
  // start of the operation `length` later.
  struct Edge {
    uint32_t start;
    uint32_t length;
    float stall;
  };

  [[nodiscard]] bool CollectOut();
  [[nodiscard]] bool CollectIn();
  [[nodiscard]] bool SortEdges();
  double Stall(double operations, int64_t out, int64_t in) const;
  double BoundaryStall(int64_t out, int64_t in) const;
  void TryCuts();
  double LongestChain(uint32_t cut, uint32_t* next_cut);

  const IdleGaps& gaps_;
  const Machine& machine_;
  const Granularity granularity_;
  uint32_t n_ = 0;
  bool joint_ = false;    // the directions slow each other down: windows weigh both
  Array<double> before_;  // durations of operations before i, over two iterations
  Array<int64_t> row_;
  Array<int64_t> out_at_boundary_;  // by start: out traffic of the window of length 1
  Array<float> out_traffic_;        // joint_ only: by start and length
  Array<Edge> edges_;               // by start, once sorted
  Array<uint32_t> first_;           // per operation: its first edge
  Array<double> chain_;   // per boundary after the cut: the longest chain that ends there ...
  Array<uint32_t> from_;  // ... and where its last window starts
  double stall_ = 0;
};

}  // namespace tidemark::core

#endif  // TIDEMARK_CORE_BOUNDS_WINDOW_BOUND_H_
