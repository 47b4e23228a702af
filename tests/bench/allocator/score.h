// The allocator scoreboard: which allocators, which figures for a trace, how they stand against the
// targets. Prints to stdout. Threads: none.

#ifndef TIDEMARK_TESTS_BENCH_ALLOCATOR_SCORE_H_
#define TIDEMARK_TESTS_BENCH_ALLOCATOR_SCORE_H_

#include <vector>

#include "tests/bench/allocator/policy.h"

namespace tidemark::bench {

inline constexpr int kSlacks = 4;
inline constexpr uint32_t kSlackPermille[kSlacks] = {0, 5, 20, 50};

// Allocators by the table's names.
std::vector<PolicyKind> Yardsticks();
PolicyKind Ours();
PolicyKind Plain();
// With this much slack in place of the product's own.
PolicyKind OursWithSlack(uint32_t permille);
PolicyKind PlainWithSlack(uint32_t permille);

struct Row {
  static constexpr double kNone = -1;  // not measured, or no such figure
  std::string trace;
  std::string policy;
  Bytes requested = 0;  // peak
  // Peak held / peak requested, no limit; recorded traces: as recorded. kNone, like the next two:
  // the allocator could not do it at all.
  double physical = 0;
  double repeated = 0;          // the same over the iteration repeated
  double capacity = 0;          // smallest that completes / peak requested
  double mapped_unlimited = 0;  // chunks mapped per steady iteration without a limit
  // The same at so much above the smallest capacity (with an arena's own
  // slack: above its smallest at none); below 0: does not complete.
  double remaps[kSlacks] = {};
  uint64_t burst = 0;     // most chunks mapped for one request, at no slack
  double internal = 0;    // (allocated - requested) / allocated, at the peak of requests
  double external = 0;    // 1 - largest free / all free, then
  bool is_floor = false;  // no allocator: only the first three figures, as far as there are any
  bool maps = false;      // a floor that maps: `mapped_unlimited` and `burst`, too
  bool fixed_shape = false;
  bool recorded = false;
  Bytes recorded_peak = 0;
};

// Names of rows that no allocator stands for.
inline constexpr char kPacking[] = "offline packing";
inline constexpr char kFewest[] = "fewest chunks";
inline constexpr char kPeaksApart[] = "peaks apart";
inline constexpr char kPeaksOfStep[] = "peaks of a step";
inline constexpr char kInFlight[] = "Tidemark, in flight";
inline constexpr char kInOrder[] = "Tidemark, stream order";
inline constexpr uint32_t kRequestsLate = 100;
inline constexpr char kFullDevice[] = "Tidemark, full device";
inline constexpr double kFullDeviceShare = 1.01;  // of the peak: what that device has

// All rows of one trace whose allocator's name contains `only`: yardsticks, ours, offline
// packing unless the trace has too many blocks, and floors.
std::vector<Row> Score(const replay::Trace& trace, const std::string& only);

bool HasAllocator(const std::string& only);  // whether any name contains it

void PrintHead();
void PrintRows(const std::vector<Row>& rows);
// Each target with "met" or "not met" and its worst rows.
void PrintTargets(const std::vector<Row>& rows);

}  // namespace tidemark::bench

#endif  // TIDEMARK_TESTS_BENCH_ALLOCATOR_SCORE_H_
