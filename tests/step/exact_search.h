// The fastest plan for a small step, found by trying all of them: the oracle for the planner and
// for the bounds. It shares no code with either, nor with the simulator.
//
// What it searches: each buffer falls into pieces of chunk_bytes, and every piece may leave in
// every gap on its own, with every choice of after, release, reserve and ready that core/plan.h
// allows and every order of both queues. Left out: being away before a transient buffer's first use
// or after its last. Choices that cannot be better are skipped; exact_search.cc says which and why.
//
// The steady state: plans are searched that find both links idle at some boundary of the iteration,
// and the same pieces away there as one iteration later. Without persistent buffers the iteration's
// start is such a boundary for every plan and the answer is exact; with them it is an upper bound
// of the optimum that only plans can beat whose links never rest together. Threads: none of its
// own.

#ifndef TIDEMARK_TESTS_STEP_EXACT_SEARCH_H_
#define TIDEMARK_TESTS_STEP_EXACT_SEARCH_H_

#include <cstddef>

#include "core/step.h"

namespace tidemark::steps {

enum class ExactGoal { kTime, kBytesOut, kBytesIn, kBytes };

struct ExactAnswer {
  bool finished = false;  // false: more than `most_states` states, or more pieces than fit
  bool feasible = false;  // some plan holds the budgets
  double value = 0;       // ns or bytes per iteration
  size_t states = 0;
};

inline constexpr size_t kExactPieces = 32;

ExactAnswer ExactSearch(const core::Step& step, const core::Machine& machine, ExactGoal goal,
                        size_t most_states = 200'000);

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_EXACT_SEARCH_H_
