// The rules of core/plan.h that can be read off a plan without executing it. The simulator asks
// here first; what depends on order and contents (host copies, overlaps, budgets) it finds on its
// way. Threads: none of its own.

#ifndef TIDEMARK_TESTS_STEP_PLAN_RULES_H_
#define TIDEMARK_TESTS_STEP_PLAN_RULES_H_

#include <string>

#include "core/plan.h"
#include "core/step.h"

namespace tidemark::steps {

// Empty, or one sentence that names the move, its buffer and the operation concerned.
std::string BrokenRule(const core::Step& step, const core::Machine& machine,
                       const core::Plan& plan);

// Boundaries from `from` to `to`, going forward through the iteration's end; 0 when they are equal.
inline uint32_t CyclicDistance(core::OpIndex from, core::OpIndex to, size_t ops) {
  return to >= from ? to - from : static_cast<uint32_t>(ops) - from + to;
}

std::string MoveName(const core::Plan& plan, core::MoveIndex move);  // "move 3 of buffer 7"

}  // namespace tidemark::steps

#endif  // TIDEMARK_TESTS_STEP_PLAN_RULES_H_
